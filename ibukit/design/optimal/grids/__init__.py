"""Private mechanisms off paths: columns by hill climbing, and a bound by patches of secrets."""
