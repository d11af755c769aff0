"""What a secondary network is: which ranges it has, and under which names its objects are found."""
