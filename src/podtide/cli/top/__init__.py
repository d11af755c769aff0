"""`podtide top`: how full the subnets are and how the nodes do. `overview` computes, `tables` and `drawing` show."""
