"""A study's page while it runs: served on this machine, brought up to date as trials are told."""
