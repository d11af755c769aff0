"""What the page is looked at on, by tests, pictures and benchmarks: clusters that live, clusters that are drawn, and their past.

living_cluster     controller, agents and allocator at work in a thread, served as a real cluster is
drawn_fleet        thousands of nodes as the objects they would have, without programs behind them
past_weeks         weeks of a subnet's use in an allocator's database
dashboard_process  `podtide dashboard`, as a person starts it
"""
