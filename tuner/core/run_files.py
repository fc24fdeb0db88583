"""What the files of a run directory are called."""

CONFIG_FILE = "config.yaml"  # with every default
JOURNAL_FILE = "journal.jsonl"
TRIALS_DIR = "trials"  # beside the journal: values by query of each trial
ASKED_FILE = f"{TRIALS_DIR}/queries.jsonl"  # whose these are: a line a query, in their order
EARLIER_FILE = "earlier.jsonl"  # trials of other studies that this one learns from
BEST_FILE = "best.yaml"
SO_FAR = "# best so far, of an interrupted study: no verdict\n"  # its first line where that is so
POLICY_FILE = "policy.yaml"
QUERIES_FILE = "per_query.jsonl"  # what winner and baseline retrieved, a line a query
TUNE_QUERIES_FILE = "tune_queries.jsonl"  # the same on the tune queries, where others decide
PASSAGES_FILE = "passages.jsonl"  # the texts of what these files name
TABLE_FILE = "per_query.json"  # the same as MLflow's table, among the artifacts only
TRIALS_TABLE_FILE = "trials.json"  # every trial as MLflow's table, among the artifacts only
REPORT_FILE = "report.html"
REPORT_DATA_DIR = "report-data"  # what the page loads when it is asked for
FIGURES_DIR = "figures"
PLOTS_DIR = "plots"
