"""Two coordinators side by side: is what they did at each event the same?"""
