"""The scripts that record need the programs; pytest would import them for their doctests."""

collect_ignore_glob = ["record_*.py"]
