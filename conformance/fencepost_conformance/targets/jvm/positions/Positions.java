package org.apache.kafka.clients.consumer.internals;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.ApiVersions;
import org.apache.kafka.clients.Metadata.LeaderAndEpoch;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.message.OffsetForLeaderEpochResponseData.EpochEndOffset;
import org.apache.kafka.common.utils.LogContext;

/**
 * Drives Kafka's SubscriptionState by lines, and prints its state after each: the assigned partitions in the order of
 * fetches, each with its fetch state, position, and whether it is paused, fetchable and awaiting initialisation.
 * Partitions are numbers of topic t below 10, of u from there on; epochs and leaders -1 are unknown.
 */
public final class Positions {
    private static SubscriptionState state;

    private Positions() {
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        PrintStream out = new PrintStream(System.out, false);
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String thrown = "";
            try {
                take(line.split(" "));
            } catch (RuntimeException exception) {
                thrown = exception.getClass().getSimpleName();
            }
            out.println(thrown + "|" + show());
            if (!lines.ready()) {
                out.flush();
            }
        }
        out.flush();
    }

    private static void take(String[] words) {
        TopicPartition one = words.length > 1 && words[1].matches("\\d+") ? partition(words[1]) : null;
        switch (words[0]) {
            case "new" -> state = new SubscriptionState(new LogContext(), strategy(words[1]));
            case "subscribe" -> state.subscribe(Set.of(words[1].split(",")), Optional.empty());
            case "by-hand" -> state.assignFromUser(new HashSet<>(partitions(words)));
            case "unsubscribe" -> state.unsubscribe();
            case "own" -> state.assignFromSubscribed(partitions(words));
            case "mark" -> state.markPendingRevocation(new HashSet<>(partitions(words)));
            case "pause" -> state.pause(one);
            case "resume" -> state.resume(one);
            case "seek" -> state.seekUnvalidated(one, position(words));
            case "reset" -> state.requestOffsetReset(one, strategy(words[2]));
            case "initialise" -> state.resetInitializingPositions();
            case "listed" -> state.maybeSeekUnvalidated(one, position(words), strategy(words[6]));
            case "leader" -> state.maybeValidatePositionForCurrentLeader(new ApiVersions(), one, leader(words, 2));
            case "ended" -> state.maybeCompleteValidation(one, position(words),
                new EpochEndOffset().setLeaderEpoch(number(words[6])).setEndOffset(number(words[7])));
            case "read" -> state.position(one, position(words));
            case "last" -> state.movePartitionToEnd(one);
            default -> throw new IllegalArgumentException(words[0]);
        }
    }

    private static String show() {
        List<String> rows = new ArrayList<>();
        Set<TopicPartition> initializing = state.initializingPartitions();
        for (TopicPartition each : state.assignedPartitionsList()) {
            SubscriptionState.FetchPosition position = state.positionOrNull(each);
            String name = state.hasValidPosition(each) ? "FETCHING"
                : state.awaitingValidation(each) ? "AWAIT_VALIDATION"
                : state.isOffsetResetNeeded(each) ? "AWAIT_RESET " + state.resetStrategy(each).name()
                : "INITIALIZING";
            String where = position == null ? "-" : position.offset + "/" + position.offsetEpoch.orElse(-1) + "/"
                + position.currentLeader.leader.map(Node::id).orElse(-1) + "/" + position.currentLeader.epoch.orElse(-1);
            int number = each.partition() + (each.topic().equals("u") ? 10 : 0);
            rows.add(number + " " + name + " " + where + (state.isPaused(each) ? " paused" : "")
                + (state.isFetchable(each) ? " fetchable" : "") + (initializing.contains(each) ? " initialises" : ""));
        }
        return String.join("; ", rows);
    }

    private static SubscriptionState.FetchPosition position(String[] words) {
        return new SubscriptionState.FetchPosition(Long.parseLong(words[2]), known(words[3]), leader(words, 4));
    }

    private static LeaderAndEpoch leader(String[] words, int at) {
        return new LeaderAndEpoch(known(words[at]).map(id -> new Node(id, "h", 1)), known(words[at + 1]));
    }

    private static Optional<Integer> known(String word) {
        return number(word) < 0 ? Optional.empty() : Optional.of(number(word));
    }

    private static int number(String word) {
        return Integer.parseInt(word);
    }

    private static AutoOffsetResetStrategy strategy(String name) {
        return AutoOffsetResetStrategy.fromString(name);
    }

    private static List<TopicPartition> partitions(String[] words) {
        return Arrays.stream(words).skip(1).map(Positions::partition).toList();
    }

    private static TopicPartition partition(String word) {
        int number = number(word);
        return number < 10 ? new TopicPartition("t", number) : new TopicPartition("u", number - 10);
    }
}
