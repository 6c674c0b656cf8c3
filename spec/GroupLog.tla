------------------------------ MODULE GroupLog ------------------------------
(***************************************************************************)
(* How the state of a coordinator survives: one partition of the topic     *)
(* __consumer_offsets on several brokers. Records have keys; the last      *)
(* record of a key is its value, and a tombstone removes the key. Each     *)
(* broker cleans its own copy in any order; a copy that diverged is        *)
(* truncated. GroupLog refines Durable, so a module built on Durable never *)
(* meets any of this. docs/closed-system.md, part four, is its contract.   *)
(*                                                                         *)
(* A broker believes that it coordinates until it learns of a later        *)
(* election, so two may do so at a time (F-CONS-07).                       *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANTS
  Brokers,    \* who has a copy
  Keys,       \* what records are about: a group, a member, an offset
  Values,     \* what a record may contain
  Ends,       \* how many records any copy may ever get
  Elections,  \* how often a leader may be elected, the first time included
  Allowed     \* names of the environment actions that may happen

ASSUME "b1" \in Brokers      \* the first leader
ASSUME "" \notin Values      \* the value of a tombstone
ASSUME Ends \in Nat /\ Elections \in Nat \ {0}
ASSUME Keys # {}
ASSUME Allowed \subseteq {"ClientWrites", "WriteTimesOut", "CleanerDropsRecord",
                        "CleanerDropsTombstone", "FollowerFallsBehind", "LeaderIsElected"}

Nothing == ""  \* the value of a tombstone, and of a key without a record

Record == [offset : 0..(Ends - 1), epoch : 1..Elections,
           key : Keys, value : Values \cup {Nothing}]

\* The result of all records: a value for each key.
IsState(s) == s \in [Keys -> Values \cup {Nothing}]
Empty == [k \in Keys |-> Nothing]

VARIABLE log  \* the copies; where a record was cleaned away there is a gap
TypeLog == log \in [Brokers -> SUBSET Record]

VARIABLE end  \* the offset that the next record of a copy gets
TypeEnd == end \in [Brokers -> 0..Ends]

VARIABLE highWatermark  \* high watermark: all before it is known to be replicated
TypeHighWatermark == \A b \in Brokers : highWatermark[b] \in 0..end[b]

\* Each elected leader, and where its records begin; the index is the epoch.
VARIABLE elections
TypeElections ==
  /\ Len(elections) \in 1..Elections
  /\ \A e \in 1..Len(elections) :
       elections[e] \in [leader : Brokers, start : 0..Ends]

VARIABLE knownEpoch  \* the last election that a broker has learned of
TypeKnownEpoch == knownEpoch \in [Brokers -> 1..Len(elections)]

VARIABLE inSync  \* whose copies count: a leader is elected among them
TypeInSync == inSync \in SUBSET Brokers \ {{}}

VARIABLE memory  \* the state that a coordinator has, and the offset that it reads next
TypeMemory == \A b \in Brokers : /\ IsState(memory[b].state)
                                 /\ memory[b].next \in 0..end[b]

VARIABLE waiting  \* writes whose clients wait for an answer, by coordinator
TypeWaiting == waiting \in [Brokers -> SUBSET Record]

\* For each key the last replicated write, if its client received an answer.
VARIABLE acknowledged
TypeAcknowledged ==
  /\ acknowledged \subseteq Record
  /\ \A r, q \in acknowledged : r.key = q.key => r = q

vars == <<log, end, highWatermark, elections, knownEpoch, inSync, memory, waiting, acknowledged>>
copies  == <<log, end, highWatermark>>
cluster == <<elections, knownEpoch, inSync>>
clients == <<waiting, acknowledged>>

EveryVariableHasItsType ==
  /\ TypeLog /\ TypeEnd /\ TypeHighWatermark /\ TypeElections /\ TypeKnownEpoch
  /\ TypeInSync /\ TypeMemory /\ TypeWaiting /\ TypeAcknowledged

EmptyMemory == [state |-> Empty, next |-> 0]

Init ==
  /\ log = [b \in Brokers |-> {}]
  /\ end = [b \in Brokers |-> 0]
  /\ highWatermark = [b \in Brokers |-> 0]
  /\ elections = <<[leader |-> "b1", start |-> 0]>>
  /\ knownEpoch = [b \in Brokers |-> 1]
  /\ inSync = Brokers
  /\ memory = [b \in Brokers |-> EmptyMemory]
  /\ waiting = [b \in Brokers |-> {}]
  /\ acknowledged = {}

-----------------------------------------------------------------------------
(***************************************************************************)
(* Logs.                                                                   *)
(***************************************************************************)
Min(S) == CHOOSE n \in S : \A m \in S : n <= m
Max(S) == CHOOSE n \in S : \A m \in S : n >= m

From(L, n)   == {r \in L : r.offset >= n}
Before(L, n) == {r \in L : r.offset < n}
OfKey(L, k)  == {r \in L : r.key = k}
Earliest(L)  == CHOOSE r \in L : \A q \in L : r.offset <= q.offset
Latest(L)    == CHOOSE r \in L : \A q \in L : r.offset >= q.offset

\* The state that the records of L before offset n give.
Replay(L, n) ==
  [k \in Keys |-> LET R == OfKey(Before(L, n), k)
                  IN IF R = {} THEN Nothing ELSE Latest(R).value]

Epoch  == Len(elections)
Leader == elections[Epoch].leader

\* b coordinates, as far as it knows.
IsLeader(b) == elections[knownEpoch[b]].leader = b

\* It has read its log to the end, as the end was and as it is (F-LOAD-01).
Loaded(b) == memory[b].next = end[b]

\* b has learned of the last election, and follows the broker that won it.
IsFollower(b) == knownEpoch[b] = Epoch /\ b # Leader

\* No later leader began before the record, so all copies have it, or will.
IsNeverTruncated(r) == \A e \in (r.epoch + 1)..Epoch : r.offset < elections[e].start

\* Where the copy of b diverges from those of later leaders, or its end.
DivergenceOffset(b) ==
  Min({end[b]} \cup {elections[e].start : e \in (knownEpoch[b] + 1)..Epoch})

\* The high watermark that b may set: every copy that counts has the records
\* before it.
ReplicatedToAll(b) == Min({end[o] : o \in inSync \cup {b}})

\* A coordinator may count on the copies of others only while they follow it.
MayReplicate(b) == b = Leader /\ knownEpoch[b] = Epoch

\* The copy of b is complete up to where the last leader began (KAFKA-7128).
CaughtUp(b) == end[b] >= highWatermark[Leader] /\ end[b] >= elections[Epoch].start

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: coordinators.                                                   *)
(***************************************************************************)

\* A coordinator that has not read its log to the end reads the next record. The
\* cleaner may rewrite the log meanwhile (F-REPLAY-18).
CoordinatorLoads(b) ==
  /\ IsLeader(b)
  /\ ~Loaded(b)
  /\ LET R == From(log[b], memory[b].next)
         r == Earliest(R)
     IN memory' = [memory EXCEPT ![b] =
          IF R = {} THEN [@ EXCEPT !.next = end[b]]
          ELSE [state |-> [@.state EXCEPT ![r.key] = r.value],
                next  |-> r.offset + 1]]
  /\ UNCHANGED <<copies, cluster, clients>>

LastOfEachKey(R) == {r \in R : \A q \in OfKey(R, r.key) : q.offset <= r.offset}

\* Those of the acknowledged writes that no record of R supersedes.
NotSuperseded(acked, R) == acked \cap LastOfEachKey(acked \cup R)

\* The leader learns that all copies that count have more records, and raises
\* its high watermark. Answers that waited are released (F-RT-04, 14).
HighWatermarkRises(b) ==
  /\ MayReplicate(b)
  /\ ReplicatedToAll(b) > highWatermark[b]
  /\ highWatermark' = [highWatermark EXCEPT ![b] = ReplicatedToAll(b)]
  /\ LET done == Before(waiting[b], ReplicatedToAll(b))
         new == From(Before(log[b], ReplicatedToAll(b)), highWatermark[b])
     IN /\ waiting' = [waiting EXCEPT ![b] = @ \ done]
        /\ acknowledged' = NotSuperseded(acknowledged \cup done, new)
  /\ UNCHANGED <<log, end, cluster, memory>>

\* A broker learns that another one was elected, and follows it: it truncates
\* its copy where that diverges, and ends its coordinator. Waiting clients get
\* NOT_COORDINATOR, although their writes may survive (F-UNLOAD-01).
BrokerLearnsElection(b) ==
  /\ knownEpoch[b] < Epoch
  /\ knownEpoch' = [knownEpoch EXCEPT ![b] = Epoch]
  /\ log' = [log EXCEPT ![b] = Before(@, DivergenceOffset(b))]
  /\ end' = [end EXCEPT ![b] = DivergenceOffset(b)]
  /\ highWatermark' = [highWatermark EXCEPT ![b] = Min({@, DivergenceOffset(b)})]
  /\ memory' = [memory EXCEPT ![b] = EmptyMemory]
  /\ waiting' = [waiting EXCEPT ![b] = {}]
  /\ UNCHANGED <<elections, inSync, acknowledged>>

(***************************************************************************)
(* System: copies.                                                         *)
(***************************************************************************)

\* A follower fetches the leader's next record, or its end if the rest was
\* cleaned away, and its high watermark.
FollowerFetches(b) ==
  /\ IsFollower(b)
  /\ \/ end[b] < end[Leader]
     \/ highWatermark[b] < highWatermark[Leader]
  /\ LET R == From(log[Leader], end[b])
         r == Earliest(R)
         upto == IF R = {} THEN end[Leader] ELSE r.offset + 1
     IN /\ log' = [log EXCEPT ![b] = IF R = {} THEN @ ELSE @ \cup {r}]
        /\ end' = [end EXCEPT ![b] = upto]
        /\ highWatermark' = [highWatermark EXCEPT
              ![b] = Max({@, Min({highWatermark[Leader], upto})})]
  /\ UNCHANGED <<cluster, memory, clients>>

\* The leader counts on the copy of a follower that has caught up.
FollowerIsInSync(b) ==
  /\ IsFollower(b)
  /\ b \notin inSync
  /\ CaughtUp(b)
  /\ inSync' = inSync \cup {b}
  /\ UNCHANGED <<copies, elections, knownEpoch, memory, clients>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment: clients.                                                   *)
(***************************************************************************)

\* A client writes a record to a coordinator that has loaded and has room.
\* Memory changes at once; the answer waits (F-RT-04). A tombstone is written
\* only for an existing key.
ClientWrites(b, k, v) ==
  /\ "ClientWrites" \in Allowed
  /\ IsLeader(b)
  /\ Loaded(b)
  /\ end[b] < Ends
  /\ v = Nothing => memory[b].state[k] # Nothing
  /\ LET r == [offset |-> end[b], epoch |-> knownEpoch[b], key |-> k, value |-> v]
     IN /\ log' = [log EXCEPT ![b] = @ \cup {r}]
        /\ waiting' = [waiting EXCEPT ![b] = @ \cup {r}]
  /\ end' = [end EXCEPT ![b] = @ + 1]
  /\ memory' = [memory EXCEPT ![b] =
       [state |-> [@.state EXCEPT ![k] = v], next |-> @.next + 1]]
  /\ UNCHANGED <<highWatermark, cluster, acknowledged>>

\* The coordinator's memory after the write of r timed out: unchanged, since the
\* record is in the log (F-RT-09).
AfterTimeOut(b, r) == memory[b].state

\* A write times out: its client learns that the outcome is unknown. The record
\* stays, and may survive (F-RT-09).
WriteTimesOut(b) ==
  /\ "WriteTimesOut" \in Allowed
  /\ \E r \in waiting[b] :
       /\ waiting' = [waiting EXCEPT ![b] = @ \ {r}]
       /\ memory' = [memory EXCEPT ![b].state = AfterTimeOut(b, r)]
  /\ UNCHANGED <<copies, cluster, acknowledged>>

(***************************************************************************)
(* Environment: cleaners. Each works on one copy, below its high           *)
(* watermark, and may be stopped after any record.                         *)
(***************************************************************************)

\* A later record of the key is replicated.
Superseded(b, r) ==
  \E q \in OfKey(Before(log[b], highWatermark[b]), r.key) : q.offset > r.offset

\* A cleaner removes a superseded record.
CleanerDropsRecord(b) ==
  /\ "CleanerDropsRecord" \in Allowed
  /\ \E r \in Before(log[b], highWatermark[b]) :
       /\ Superseded(b, r)
       /\ log' = [log EXCEPT ![b] = @ \ {r}]
  /\ UNCHANGED <<end, highWatermark, cluster, memory, clients>>

\* This copy has no older record of the key for the tombstone to remove.
HasNoOlderRecords(b, r) == Before(OfKey(log[b], r.key), r.offset) = {}

\* Every broker has it, or had it, and a coordinator that reads has passed it:
\* delete.retention.ms is long enough for that.
EveryBrokerHasSeen(b, r) ==
  /\ \A o \in Brokers : knownEpoch[o] = Epoch /\ end[o] > r.offset
  /\ IsLeader(b) => memory[b].next > r.offset

\* A cleaner removes a tombstone that is no longer needed.
CleanerDropsTombstone(b) ==
  /\ "CleanerDropsTombstone" \in Allowed
  /\ \E r \in Before(log[b], highWatermark[b]) :
       /\ r.value = Nothing
       /\ HasNoOlderRecords(b, r)
       /\ EveryBrokerHasSeen(b, r)
       /\ log' = [log EXCEPT ![b] = @ \ {r}]
  /\ UNCHANGED <<end, highWatermark, cluster, memory, clients>>

(***************************************************************************)
(* Environment: the cluster.                                               *)
(***************************************************************************)

\* The leader stops waiting for the copy of a slow follower.
FollowerFallsBehind(b) ==
  /\ "FollowerFallsBehind" \in Allowed
  /\ b \in inSync \ {Leader}
  /\ inSync' = inSync \ {b}
  /\ UNCHANGED <<copies, elections, knownEpoch, memory, clients>>

\* The controller takes the leader for dead and elects b, whose copy counts. b
\* begins to load; the old leader does not know yet.
LeaderIsElected(b) ==
  /\ "LeaderIsElected" \in Allowed
  /\ Epoch < Elections
  /\ b \in inSync \ {Leader}
  /\ elections' = Append(elections, [leader |-> b, start |-> end[b]])
  /\ knownEpoch' = [knownEpoch EXCEPT ![b] = Epoch + 1]
  /\ inSync' = {b}
  /\ memory' = [memory EXCEPT ![b] = EmptyMemory]
  /\ UNCHANGED <<copies, clients>>

-----------------------------------------------------------------------------
System ==
  \E b \in Brokers :
    \/ CoordinatorLoads(b)
    \/ HighWatermarkRises(b)
    \/ BrokerLearnsElection(b)
    \/ FollowerFetches(b)
    \/ FollowerIsInSync(b)

Environment ==
  \E b \in Brokers :
    \/ \E k \in Keys, v \in Values \cup {Nothing} : ClientWrites(b, k, v)
    \/ WriteTimesOut(b)
    \/ CleanerDropsRecord(b)
    \/ CleanerDropsTombstone(b)
    \/ FollowerFallsBehind(b)
    \/ LeaderIsElected(b)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars
=============================================================================
