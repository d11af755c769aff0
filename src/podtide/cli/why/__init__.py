"""`podtide why`: the chain of decisions behind a pod's address. `facts` reads, `chain` and `next_step` decide what to say."""
