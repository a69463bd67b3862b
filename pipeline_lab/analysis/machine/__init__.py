"""What the job took of its machine: memory, processor, GPU clock, and what the profiler cost."""
