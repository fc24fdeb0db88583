// All queries: what the list knows of them, searched, filtered and ordered. Row n is the nth query
// of the index, which begins with those that changed most. A text of the data is put into the page
// by `textContent` alone.
const sideNames = ["winner", "baseline"];
const changeFilters = {
  all: { name: "any difference", has: function () { return true; } },
  gained: { name: "gained", has: function (q) { return q.change > sameChange; } },
  lost: { name: "lost", has: function (q) { return q.change < -sameChange; } },
  same: { name: "the same", has: function (q) { return q.change !== null && Math.abs(q.change) <= sameChange; } },
  failed: { name: "failed: the winner found nothing relevant", has: function (q) { return q.failed; } },
  undefined: { name: "without a value", has: function (q) { return q.change === null; } },
};
const queryOrders = {
  changed: { name: "changed most", by: function (q) { return -Math.abs(q.change); } },
  lost: { name: "lost most", by: function (q) { return q.change; } },
  gained: { name: "gained most", by: function (q) { return -q.change; } },
  worst: { name: "worst with the winner", by: function (q) { return q.sides[0].composite; } },
};

// The queries of a study, from its index: {rows, head, add(block)}.
function makeQueries(head) {
  const rows = [];

  function row(block, at) {
    const sides = block.sides.map(function (side) {
      return {
        composite: side.composite[at], kept: Boolean(side.kept[at]), ranks: side.ranks[at],
        metrics: side.metrics.map(function (values) { return values[at]; })
      };
    });
    const [winner, baseline] = sides;
    const isKnown = winner.composite !== null && baseline.composite !== null;
    return {
      number: rows.length, id: block.id[at], text: block.text[at], type: head.types[block.type[at]],
      tune: block.tune[at], isHeldOut: Boolean(block.holdout[at]), relevant: block.relevant[at],
      relevants: block.relevants[at], sides: sides,
      change: isKnown ? winner.composite - baseline.composite : null,
      failed: block.relevants[at] > 0 && winner.ranks !== null && winner.ranks.every(function (rank) { return rank === 0; }),
      words: (block.id[at] + "\n" + block.text[at]).toLocaleLowerCase()
    };
  }

  return {
    head: head,
    rows: rows,
    add: function (block) {
      block.id.forEach(function (_, at) { rows.push(row(block, at)); });
    },
    byId: function (id) { return rows.find(function (one) { return one.id === id; }); },
    // Which file has what opening a query shows, and where in it.
    place: function (query) {
      let file = 0;
      while (file + 1 < head.chunks.length && head.chunks[file + 1] <= query.number) { file += 1; }
      return { name: "queries-" + fileNumber(file), at: query.number - head.chunks[file] };
    },
    fileOf: function (trial) {
      const found = head.trials.file.find(function (one) { return one[0] === trial; });
      return found ? "trials-" + fileNumber(found[1]) : null;
    }
  };
}

function fileNumber(number) { return String(number + 1).padStart(4, "0"); }

// The queries that a wish of the reader leaves, in its order.
function chosenQueries(queries, wish, trial) {
  const words = wish.words.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  const change = changeFilters[wish.change];
  const found = queries.rows.filter(function (query) {
    return (wish.type === null || query.type === wish.type) &&
      (wish.part === null || query.isHeldOut === (wish.part === "holdout")) &&
      change.has(query) &&
      words.every(function (word) { return query.words.includes(word); });
  });
  const by = wish.order === "trial" ? function (query) {
    const value = trial ? trial.composite(query) : null;
    const base = query.sides[1].composite;
    return value === null || base === null ? null : value - base;
  } : queryOrders[wish.order].by;
  const keys = new Map(found.map(function (query) {
    const value = by(query);
    const isKnown = value !== null && (query.change !== null || wish.order === "trial" || wish.order === "worst");
    return [query, isKnown ? value : Infinity];
  }));
  return found.sort(function (one, other) {
    const first = keys.get(one), second = keys.get(other);
    return first === second ? one.number - other.number : first < second ? -1 : 1;
  });
}

// A trial's values by query, from its file: the ranks are those of any relevant passage.
function trialBeside(number, content) {
  const own = content.find(function (one) { return one[0] === number; });
  const [composites, found] = [own[1], own[2]];
  return {
    number: number,
    keepsComposite: composites !== null,
    composite: function (query) {
      return composites === null || query.tune === null ? null : composites[query.tune];
    },
    ranks: function (query) {
      const mask = found === null || query.tune === null ? null : found[query.tune];
      return mask === null ? null : ranksOf(mask);
    }
  };
}

// The sum of 2^(rank - 1), and of 2^(how far was looked), is taken apart; more than 32 bits.
function ranksOf(mask) {
  const ranks = [];
  const depth = Math.floor(Math.log2(mask));
  for (let rank = 1, left = mask; rank <= depth; rank += 1, left = Math.floor(left / 2)) {
    if (left % 2 === 1) { ranks.push(rank); }
  }
  return { ranks: ranks, depth: depth };
}

// "1, 4 (2 of 3)": where an answer has what is relevant.
function ranksInWords(ranks, relevants) {
  if (ranks === null) { return "not kept"; }
  const there = ranks.filter(Boolean).sort(function (a, b) { return a - b; });
  if (!relevants) { return "nothing is relevant"; }
  return (there.length ? there.join(", ") : "none") + " (" + there.length + " of " + relevants + ")";
}
