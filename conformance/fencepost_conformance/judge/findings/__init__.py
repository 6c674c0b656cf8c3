"""Known Kafka bugs by release: replays their traces, and judges each by the rule that it breaks."""
