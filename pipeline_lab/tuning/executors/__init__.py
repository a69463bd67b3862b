"""Where trials are measured: on this machine, or on the machines of a cluster, one trial on each at a time."""
