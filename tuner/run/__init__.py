"""One configured study, from its YAML file to best.yaml."""
