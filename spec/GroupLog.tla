------------------------------ MODULE GroupLog ------------------------------
(***************************************************************************)
(* How the state of a coordinator survives: one partition of the topic     *)
(* __consumer_offsets on several brokers. Records have keys, the last one  *)
(* of a key is its value, a tombstone takes the key away. Each broker      *)
(* cleans its own copy as it likes; a copy that went astray is truncated.  *)
(* GroupLog refines Durable, so nothing that stands on Durable ever meets  *)
(* any of this. docs/closed-system.md, part four, is its contract.         *)
(*                                                                         *)
(* A broker believes to coordinate until it learns of a later election, so *)
(* two may do so at a time (F-CONS-07).                                    *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANTS
  Brokers,    \* who has a copy
  Keys,       \* of what there are records: a group, a member, an offset
  Values,     \* what a record may say
  Ends,       \* how many records any copy may ever get
  Elections,  \* how often a leader may be elected, the first time included
  Allowed     \* names of the environment actions that may happen

ASSUME "b1" \in Brokers      \* who leads at first
ASSUME "" \notin Values      \* which is what a tombstone says
ASSUME Ends \in Nat /\ Elections \in Nat \ {0}

Nothing == ""  \* the value of a tombstone, and of a key without a record

Record == [offset : 0..(Ends - 1), epoch : 1..Elections,
           key : Keys, value : Values \cup {Nothing}]

\* What the records amount to: a value for each key.
IsState(s) == s \in [Keys -> Values \cup {Nothing}]
Empty == [k \in Keys |-> Nothing]

VARIABLE log        \* the copies; where a record was cleaned away there is a gap
TypeLog == log \in [Brokers -> SUBSET Record]

VARIABLE end        \* the offset that the next record of a copy gets
TypeEnd == end \in [Brokers -> 0..Ends]

VARIABLE mark       \* high watermark: all before it is known to be replicated
TypeMark == \A b \in Brokers : mark[b] \in 0..end[b]

\* Who was elected, and where its records begin; the epoch is the place in it.
VARIABLE elections
TypeElections ==
  /\ Len(elections) \in 1..Elections
  /\ \A e \in 1..Len(elections) :
       elections[e] \in [leader : Brokers, start : 0..Ends]

VARIABLE known      \* the last election that a broker has heard of
TypeKnown == known \in [Brokers -> 1..Len(elections)]

VARIABLE insync     \* whose copies count: a leader is elected among them
TypeInsync == insync \in SUBSET Brokers \ {{}}

VARIABLE memory     \* the state that a coordinator has, and where it has read to
TypeMemory == \A b \in Brokers : /\ IsState(memory[b].state)
                                 /\ memory[b].next \in 0..end[b]

VARIABLE waiting    \* writes whose clients wait for an answer, by coordinator
TypeWaiting == waiting \in [Brokers -> SUBSET Record]

\* Of each key the last write that is replicated, if its client was told so.
VARIABLE acknowledged
TypeAcknowledged ==
  /\ acknowledged \subseteq Record
  /\ \A r, q \in acknowledged : r.key = q.key => r = q

vars == <<log, end, mark, elections, known, insync, memory, waiting, acknowledged>>
copies  == <<log, end, mark>>
cluster == <<elections, known, insync>>
clients == <<waiting, acknowledged>>

EveryVariableHasItsType ==
  /\ TypeLog /\ TypeEnd /\ TypeMark /\ TypeElections /\ TypeKnown
  /\ TypeInsync /\ TypeMemory /\ TypeWaiting /\ TypeAcknowledged

Unread == [state |-> Empty, next |-> 0]

Init ==
  /\ log = [b \in Brokers |-> {}]
  /\ end = [b \in Brokers |-> 0]
  /\ mark = [b \in Brokers |-> 0]
  /\ elections = <<[leader |-> "b1", start |-> 0]>>
  /\ known = [b \in Brokers |-> 1]
  /\ insync = Brokers
  /\ memory = [b \in Brokers |-> Unread]
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

\* The state that the records of L before offset n amount to.
Replay(L, n) ==
  [k \in Keys |-> LET R == OfKey(Before(L, n), k)
                  IN IF R = {} THEN Nothing ELSE Latest(R).value]

Epoch  == Len(elections)
Leader == elections[Epoch].leader

\* b coordinates, for all that it knows.
Leads(b) == elections[known[b]].leader = b

\* It has read its log to the end, as the end was and as it is (F-LOAD-01).
Loaded(b) == memory[b].next = end[b]

\* b has heard of the last election, and follows whoever won it.
Follows(b) == known[b] = Epoch /\ b # Leader

\* No later leader began before the record, so it is where all have it, or will.
Stays(r) == \A e \in (r.epoch + 1)..Epoch : r.offset < elections[e].start

\* Where the copy of b parts from those of later leaders, or its end.
Parting(b) ==
  Min({end[b]} \cup {elections[e].start : e \in (known[b] + 1)..Epoch})

\* The high watermark that b may set: all that must have a record before it, do.
HeldByAll(b) == Min({end[o] : o \in insync \cup {b}})

\* A coordinator may count on the copies of others only while they follow it.
MayReplicate(b) == b = Leader /\ known[b] = Epoch

\* A broker whose copy is good up to where the last leader began (KAFKA-7128).
CaughtUp(b) == end[b] >= mark[Leader] /\ end[b] >= elections[Epoch].start

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: coordinators.                                                   *)
(***************************************************************************)

\* WHO a coordinator. WHEN it has not read its log to the end. DOES read on.
\* The cleaner may be at work meanwhile (F-REPLAY-18).
CoordinatorLoads(b) ==
  /\ Leads(b)
  /\ ~Loaded(b)
  /\ LET R == From(log[b], memory[b].next)
         r == Earliest(R)
     IN memory' = [memory EXCEPT ![b] =
          IF R = {} THEN [@ EXCEPT !.next = end[b]]
          ELSE [state |-> [@.state EXCEPT ![r.key] = r.value],
                next  |-> r.offset + 1]]
  /\ UNCHANGED <<copies, cluster, clients>>

LastOfEach(R) == {r \in R : \A q \in OfKey(R, r.key) : q.offset <= r.offset}

\* Those of the told writes that none of the records supersedes, told or not.
StillLast(told, R) == told \cap LastOfEach(told \cup R)

\* WHO the leader. WHEN all that must have them have more records than it knew.
\* DOES raise its high watermark; answers that waited are released (F-RT-04, 14).
HighWatermarkRises(b) ==
  /\ MayReplicate(b)
  /\ HeldByAll(b) > mark[b]
  /\ mark' = [mark EXCEPT ![b] = HeldByAll(b)]
  /\ LET done == Before(waiting[b], HeldByAll(b))
         new == From(Before(log[b], HeldByAll(b)), mark[b])
     IN /\ waiting' = [waiting EXCEPT ![b] = @ \ done]
        /\ acknowledged' = StillLast(acknowledged \cup done, new)
  /\ UNCHANGED <<log, end, cluster, memory>>

\* WHO a broker. WHEN it hears that somebody else was elected. DOES follow: cuts
\* off what others have otherwise, and ends its coordinator. Clients that wait are
\* told to look elsewhere; what they wrote may survive all the same (F-UNLOAD-01).
BrokerLearns(b) ==
  /\ known[b] < Epoch
  /\ known' = [known EXCEPT ![b] = Epoch]
  /\ log' = [log EXCEPT ![b] = Before(@, Parting(b))]
  /\ end' = [end EXCEPT ![b] = Parting(b)]
  /\ mark' = [mark EXCEPT ![b] = Min({@, Parting(b)})]
  /\ memory' = [memory EXCEPT ![b] = Unread]
  /\ waiting' = [waiting EXCEPT ![b] = {}]
  /\ UNCHANGED <<elections, insync, acknowledged>>

(***************************************************************************)
(* System: copies.                                                         *)
(***************************************************************************)

\* WHO a follower. WHEN the leader has more records, or a higher watermark.
\* DOES fetch the next record, or the end where the rest was cleaned away.
FollowerFetches(b) ==
  /\ Follows(b)
  /\ \/ end[b] < end[Leader]
     \/ mark[b] < mark[Leader]
  /\ LET R == From(log[Leader], end[b])
         r == Earliest(R)
         upto == IF R = {} THEN end[Leader] ELSE r.offset + 1
     IN /\ log' = [log EXCEPT ![b] = IF R = {} THEN @ ELSE @ \cup {r}]
        /\ end' = [end EXCEPT ![b] = upto]
        /\ mark' = [mark EXCEPT ![b] = Max({@, Min({mark[Leader], upto})})]
  /\ UNCHANGED <<cluster, memory, clients>>

\* WHO the leader. WHEN a follower has caught up. DOES count on its copy again.
FollowerIsInSync(b) ==
  /\ Follows(b)
  /\ b \notin insync
  /\ CaughtUp(b)
  /\ insync' = insync \cup {b}
  /\ UNCHANGED <<copies, elections, known, memory, clients>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment: clients.                                                   *)
(***************************************************************************)

\* WHO a client and a coordinator. WHEN it has loaded and there is room. DOES
\* write a record: memory has it at once, the answer waits (F-RT-04). A tombstone
\* is written only of what there is.
ClientWrites(b, k, v) ==
  /\ "ClientWrites" \in Allowed
  /\ Leads(b)
  /\ Loaded(b)
  /\ end[b] < Ends
  /\ v = Nothing => memory[b].state[k] # Nothing
  /\ LET r == [offset |-> end[b], epoch |-> known[b], key |-> k, value |-> v]
     IN /\ log' = [log EXCEPT ![b] = @ \cup {r}]
        /\ waiting' = [waiting EXCEPT ![b] = @ \cup {r}]
  /\ end' = [end EXCEPT ![b] = @ + 1]
  /\ memory' = [memory EXCEPT ![b] =
       [state |-> [@.state EXCEPT ![k] = v], next |-> @.next + 1]]
  /\ UNCHANGED <<mark, cluster, acknowledged>>

\* The coordinator's memory after the client of record r was told of a time-out:
\* as before, since the record is in the log (F-RT-09).
AfterTimeOut(b, r) == memory[b].state

\* WHO the clock. WHEN a write waits for long. DOES tell the client that nobody
\* knows what became of it. The record stays, and may survive (F-RT-09).
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
  \E q \in OfKey(Before(log[b], mark[b]), r.key) : q.offset > r.offset

\* WHO a cleaner. WHEN a record is superseded. DOES take it away.
CleanerDropsRecord(b) ==
  /\ "CleanerDropsRecord" \in Allowed
  /\ \E r \in Before(log[b], mark[b]) :
       /\ Superseded(b, r)
       /\ log' = [log EXCEPT ![b] = @ \ {r}]
  /\ UNCHANGED <<end, mark, cluster, memory, clients>>

\* Nothing is left for the tombstone to take away in this copy.
TakesNothingAway(b, r) == Before(OfKey(log[b], r.key), r.offset) = {}

\* Every broker has it, or had it, and a coordinator that reads has passed it:
\* this is what delete.retention.ms is long enough for.
EverybodyHasSeen(b, r) ==
  /\ \A o \in Brokers : known[o] = Epoch /\ end[o] > r.offset
  /\ Leads(b) => memory[b].next > r.offset

\* WHO a cleaner. WHEN a tombstone has done its work. DOES take it away.
CleanerDropsTombstone(b) ==
  /\ "CleanerDropsTombstone" \in Allowed
  /\ \E r \in Before(log[b], mark[b]) :
       /\ r.value = Nothing
       /\ TakesNothingAway(b, r)
       /\ EverybodyHasSeen(b, r)
       /\ log' = [log EXCEPT ![b] = @ \ {r}]
  /\ UNCHANGED <<end, mark, cluster, memory, clients>>

(***************************************************************************)
(* Environment: the cluster.                                               *)
(***************************************************************************)

\* WHO the leader. WHEN a follower is slow. DOES no longer wait for its copy.
FollowerFallsBehind(b) ==
  /\ "FollowerFallsBehind" \in Allowed
  /\ b \in insync \ {Leader}
  /\ insync' = insync \ {b}
  /\ UNCHANGED <<copies, elections, known, memory, clients>>

\* WHO the controller. WHEN it takes the leader for dead. DOES elect b, whose
\* copy counts. b begins to load; the old leader has heard nothing yet.
LeaderIsElected(b) ==
  /\ "LeaderIsElected" \in Allowed
  /\ Epoch < Elections
  /\ b \in insync \ {Leader}
  /\ elections' = Append(elections, [leader |-> b, start |-> end[b]])
  /\ known' = [known EXCEPT ![b] = Epoch + 1]
  /\ insync' = {b}
  /\ memory' = [memory EXCEPT ![b] = Unread]
  /\ UNCHANGED <<copies, clients>>

-----------------------------------------------------------------------------
System ==
  \E b \in Brokers :
    \/ CoordinatorLoads(b)
    \/ HighWatermarkRises(b)
    \/ BrokerLearns(b)
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
