"""The best private mechanism where the bounds are no line: columns that climb, and a bound by patches of secrets."""
