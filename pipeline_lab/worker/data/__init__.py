"""What the jobs read: one module per workload, written once as TFRecord files into a cache."""
