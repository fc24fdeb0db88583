"""What the files of a run directory are called; ``trials/`` is the journal's own."""

CONFIG_FILE = "config.yaml"  # with every default
JOURNAL_FILE = "journal.jsonl"
EARLIER_FILE = "earlier.jsonl"  # trials of other studies that this one learns from
BEST_FILE = "best.yaml"
POLICY_FILE = "policy.yaml"
QUERIES_FILE = "per_query.jsonl"  # what winner and baseline retrieved, a line a query
TABLE_FILE = "per_query.json"  # the same as MLflow's table, among the artifacts only
REPORT_FILE = "report.html"
FIGURES_DIR = "figures"
PLOTS_DIR = "plots"
