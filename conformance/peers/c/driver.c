/* Drives librdkafka, the client in C (conformance/peers/README.md). */
#include <getopt.h>
#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stopping;

static void stop(int number) {
    (void)number;
    stopping = 1;
}

static void end(int status, const char *why, const char *value) {
    fprintf(stderr, "%s%s\n", why, value);
    exit(status);
}

/* Writes an error that the client reports and the driver survives. Its text has no character that JSON would escape. */
static void complain(rd_kafka_resp_err_t error) {
    printf("{\"event\":\"error\",\"message\":\"%s\"}\n", rd_kafka_err2str(error));
    fprintf(stderr, "error: %s\n", rd_kafka_err2str(error));
}

/* A topic has no character that JSON would escape. */
static void say_partitions(const char *event, const rd_kafka_topic_partition_list_t *rows) {
    printf("{\"event\":\"%s\",\"partitions\":[", event);
    for (int i = 0; i < rows->cnt; i++)
        printf("%s[\"%s\",%d]", i ? "," : "", rows->elems[i].topic, rows->elems[i].partition);
    printf("]}\n");
}

static void say_committed(rd_kafka_resp_err_t error, const rd_kafka_topic_partition_list_t *rows) {
    for (int i = 0; !error && rows && i < rows->cnt; i++) error = rows->elems[i].err;
    if (error) {
        if (error != RD_KAFKA_RESP_ERR__NO_OFFSET) complain(error);
        return;
    }
    int written = 0;
    printf("{\"event\":\"committed\",\"offsets\":[");
    for (int i = 0; rows && i < rows->cnt; i++)
        if (rows->elems[i].offset >= 0)
            printf("%s[\"%s\",%d,%lld]", written++ ? "," : "", rows->elems[i].topic, rows->elems[i].partition,
                   (long long)rows->elems[i].offset);
    printf("]}\n");
}

static void on_commit(rd_kafka_t *rk, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *rows, void *opaque) {
    (void)rk, (void)opaque;
    say_committed(error, rows);
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t error, rd_kafka_topic_partition_list_t *rows, void *opaque) {
    (void)opaque;
    int cooperative = !strcmp(rd_kafka_rebalance_protocol(rk), "COOPERATIVE");
    int assigned = error == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS;
    say_partitions(assigned ? "assigned" : rd_kafka_assignment_lost(rk) ? "lost" : "revoked", rows);
    if (cooperative) {
        rd_kafka_error_t *wrong =
            assigned ? rd_kafka_incremental_assign(rk, rows) : rd_kafka_incremental_unassign(rk, rows);
        if (wrong) {
            complain(rd_kafka_error_code(wrong));
            rd_kafka_error_destroy(wrong);
        }
    } else {
        rd_kafka_assign(rk, assigned ? rows : NULL);
    }
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[256];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) end(2, why, "");
}

/* Spends the time that a record takes; returns 0 if the driver was stopped before. */
static int process(long millis) {
    struct timespec step = {0, 10 * 1000 * 1000};
    for (long spent = 0; spent < millis && !stopping; spent += 10) nanosleep(&step, NULL);
    return !stopping;
}

int main(int argc, char **argv) {
    static const struct option names[] = {
        {"bootstrap", 1, 0, 'b'}, {"group", 1, 0, 'g'},       {"topic", 1, 0, 't'},
        {"protocol", 1, 0, 'p'},  {"instance-id", 1, 0, 'i'}, {"assignor", 1, 0, 'a'},
        {"commit", 1, 0, 'c'},    {"processing-ms", 1, 0, 'n'}, {"session-timeout", 1, 0, 's'},
        {"version", 0, 0, 'v'},   {0, 0, 0, 0}};
    const char *commit = "sync", *bootstrap = NULL, *group = NULL;
    long processing = 0;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
    for (int got; (got = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char heartbeat[32];
        switch (got) {
        case 'b': set(conf, "bootstrap.servers", bootstrap = optarg); break;
        case 'g': set(conf, "group.id", group = optarg); break;
        case 't': rd_kafka_topic_partition_list_add(topics, optarg, RD_KAFKA_PARTITION_UA); break;
        case 'p':
            if (!strcmp(optarg, "consumer")) end(64, "unsupported: no consumer protocol (KIP-848) in librdkafka ", rd_kafka_version_str());
            if (strcmp(optarg, "classic")) end(2, "no protocol ", optarg);
            break;
        case 'i': set(conf, "group.instance.id", optarg); break;
        case 'a':
            if (!strcmp(optarg, "sticky")) end(64, "unsupported: librdkafka has no assignor ", optarg);
            set(conf, "partition.assignment.strategy", optarg);
            break;
        case 'c': commit = optarg; break;
        case 'n': processing = atol(optarg); break;
        case 's':
            set(conf, "session.timeout.ms", optarg);
            snprintf(heartbeat, sizeof heartbeat, "%ld", atol(optarg) / 3 < 1000 ? atol(optarg) / 3 : 1000);
            set(conf, "heartbeat.interval.ms", heartbeat);
            break;
        case 'v': puts(rd_kafka_version_str()); return 0;
        default: return 2;
        }
    }
    if (!bootstrap || !group || !topics->cnt) end(2, "--bootstrap, --group and --topic are needed", "");
    int automatic = !strcmp(commit, "auto"), later = !strcmp(commit, "async");
    if (!automatic && !later && strcmp(commit, "sync")) end(2, "no way to commit ", commit);
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    set(conf, "auto.offset.reset", "earliest");
    set(conf, "enable.auto.commit", automatic ? "true" : "false");
    set(conf, "auto.commit.interval.ms", "1000");
    set(conf, "enable.auto.offset.store", "false");
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_offset_commit_cb(conf, on_commit);
    char why[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (!rk) end(1, "error: ", why);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_resp_err_t error = rd_kafka_subscribe(rk, topics);
    if (error) end(1, "error: ", rd_kafka_err2str(error));
    while (!stopping) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(rk, 200);
        if (!message) continue;
        if (message->err) {
            complain(message->err);
        } else if (process(processing)) {
            const char *topic = rd_kafka_topic_name(message->rkt);
            printf("{\"event\":\"processed\",\"topic\":\"%s\",\"partition\":%d,\"offset\":%lld}\n", topic,
                   message->partition, (long long)message->offset);
            rd_kafka_topic_partition_list_t *behind = rd_kafka_topic_partition_list_new(1);
            rd_kafka_topic_partition_list_add(behind, topic, message->partition)->offset = message->offset + 1;
            if (automatic) {
                if ((error = rd_kafka_offsets_store(rk, behind))) complain(error);
            } else {
                error = rd_kafka_commit(rk, behind, later);
                if (error) complain(error); /* the callback tells a success, also of a commit that waited */
            }
            rd_kafka_topic_partition_list_destroy(behind);
        }
        rd_kafka_message_destroy(message);
    }
    if ((error = rd_kafka_consumer_close(rk))) complain(error);
    puts("{\"event\":\"closed\"}");
    rd_kafka_topic_partition_list_destroy(topics);
    rd_kafka_destroy(rk);
    return 0;
}
