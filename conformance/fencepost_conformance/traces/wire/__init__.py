"""The parts of Kafka's wire format that the suite needs: frames, headers, and messages from kio."""
