"""Searches that change a script of the user: what is worth a race, the proof of a change, the race inside its training."""
