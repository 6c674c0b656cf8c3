--------------------------- MODULE ConsumerSystem ---------------------------
(***************************************************************************)
(* The variables, and what the protocol does: members, coordinator, timers *)
(* and log. ConsumerGroup has what happens to them.                        *)
(***************************************************************************)
EXTENDS ConsumerCoordinator, ConsumerClient, Environment

CONSTANT SlowAppends  \* may other steps come between an append and its replication?

ASSUME SlowAppends \in BOOLEAN
ASSUME Allowed \subseteq
  {"ClientStarts", "ClientCrashes", "ClientLeaves", "ClientLeavesPermanently",
   "ClientGivesUp", "ClientCommits", "ClientChangesInstance", "RequestLost",
   "RequestDuplicated", "ReplyLost", "SessionTimerFiresEarly",
   "RebalanceTimerFiresEarly", "AppendFails", "LeaveAppendFails",
   "CoordinatorFailsOver", "TopicGrows"}

VARIABLE group  \* the coordinator's memory
TypeGroup == IsGroup(group)

VARIABLE log    \* what is replicated: what a new coordinator loads
TypeLog == IsHard(log)

\* Batches appended, not yet replicated, oldest first: what the log will hold
\* after each, and the answers that wait for it (M-HB-11).
VARIABLE unreplicated
TypeUnreplicated ==
  \A i \in 1..Len(unreplicated) :
    /\ IsHard(unreplicated[i].hard)
    /\ \A y \in unreplicated[i].answers : IsReply(y)

VARIABLE existing     \* how many partitions the topic has
TypeExisting == existing \in FirstParts..Len(Partitions)

VARIABLE idsUsed      \* how many member ids clients have made
TypeIdsUsed == idsUsed \in 0..Len(MemberIds)

VARIABLE client       \* the client processes
TypeClient == client \in [Clients -> Client]

TypeRequests == \A r \in requests : IsRequest(r)

TypeReplies == \A y \in replies : IsReply(y)

vars == <<group, log, unreplicated, existing, idsUsed, client, requests,
          replies, faultsLeft>>
broker == <<group, log, unreplicated>>
counters == <<existing, idsUsed>>

EveryVariableHasItsType ==
  /\ TypeGroup /\ TypeLog /\ TypeUnreplicated /\ TypeExisting /\ TypeIdsUsed
  /\ TypeClient /\ TypeRequests /\ TypeReplies /\ TypeFaultsLeft

Init ==
  /\ group = Loaded(NewGroup, FALSE)
  /\ log = NewGroup
  /\ unreplicated = << >>
  /\ existing = FirstParts
  /\ idsUsed = 0
  /\ client = [c \in Clients |-> Ended("down")]
  /\ requests = {}
  /\ replies = {}
  /\ faultsLeft = AllFaultsLeft

-----------------------------------------------------------------------------
(***************************************************************************)
(* Writing and answering. A change of the hard state is appended, and its  *)
(* answers wait for it. Answers of a step that appends nothing wait for    *)
(* the open batches before them; errors do not wait (F-RT-04, F-RT-07,     *)
(* F-RT-16).                                                               *)
(***************************************************************************)
AnswersTo(r, y) == IF r.awaited THEN {To(r.from, y)} ELSE {}

NeedsAppend(g) == Hard(g) # Hard(group)

Batch(g, answers) == [hard |-> Hard(g), answers |-> answers]

\* The answers to an append that do not wait for it: none.
SentAtOnce(answers) == {}

\* Answers without their own batch wait for the open ones (F-RT-16). Errors
\* do not wait (F-RT-07).
WaitForOpenBatches(answers) == unreplicated # << >> /\ \A y \in answers : y.error = "NONE"

\* The coordinator's memory becomes g; the answers are released as F-RT-04 says.
UpdateGroup(g, answers) ==
  /\ group' = g
  /\ CASE NeedsAppend(g) /\ SlowAppends ->
            /\ unreplicated' = Append(unreplicated, Batch(g, answers \ SentAtOnce(answers)))
            /\ replies' = replies \cup SentAtOnce(answers)
            /\ UNCHANGED log
       [] NeedsAppend(g) ->
            /\ log' = Hard(g)
            /\ replies' = replies \cup answers
            /\ UNCHANGED unreplicated
       [] WaitForOpenBatches(answers) ->
            /\ unreplicated' = [unreplicated EXCEPT ![Len(unreplicated)].answers = @ \cup answers]
            /\ UNCHANGED <<log, replies>>
       [] OTHER ->
            /\ replies' = replies \cup answers
            /\ UNCHANGED <<log, unreplicated>>

\* c stops waiting: the answer to its request, when it comes, does not reach it.
StopWaiting(c, more) ==
  /\ unreplicated' = [i \in 1..Len(unreplicated) |->
       [unreplicated[i] EXCEPT !.answers = GiveUpReplies(@, c)]]
  /\ StopListening(c, more)
  /\ UNCHANGED <<group, log>>

WaitingAnswers == UNION {unreplicated[i].answers : i \in 1..Len(unreplicated)}

\* An answer to c may still come.
ExpectsAnswer(c) == IsInFlight(c) \/ \E y \in WaitingAnswers : y.to = c

\* No client has the member id any more, so its timers are sure to fire.
IsAbandoned(m) == \A c \in Clients : client[c].memberId # m

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: members.                                                        *)
(***************************************************************************)

\* Whether a bare heartbeat would change something, or bring news, now. One that
\* would do neither is not a step: sent now or later, it is the same.
HeartbeatHasEffect(c) ==
  \E T \in TargetsFor(group, NextHeartbeat(c, client[c]), existing) :
    LET w == HandleHeartbeat(group, NextHeartbeat(c, client[c]), existing, T)
    IN \/ w.y.error # "NONE" \/ w.y.includesAssignment \/ w.y.epoch # client[c].epoch
       \/ NeedsAppend(w.g)

\* The client has something to report, or would learn something.
MustSendHeartbeat(c) ==
  client[c].state = "member" /\ ~client[c].unsure /\ ~client[c].unacknowledged
    => HeartbeatHasEffect(c)

\* A client that waits for no answer, and has something to report or to learn,
\* sends a heartbeat: to join, in full, with what it owns, or bare.
ClientSendsHeartbeat(c) ==
  LET p == client[c] IN
  /\ p.state \in {"joining", "member"}
  /\ ~p.waiting
  /\ MustSendHeartbeat(c)
  /\ client' = [client EXCEPT ![c] = AfterSending(p)]
  /\ requests' = requests \cup {NextHeartbeat(c, p)}
  /\ UNCHANGED <<broker, counters, replies, faultsLeft>>

\* A client receives the answer to its heartbeat (N-TR-02..06, N-ERR-01..04).
ClientReceivesReply ==
  /\ \E y \in replies :
       /\ replies' = replies \ {y}
       /\ client' = [client EXCEPT ![y.to] = AfterReply(@, y)]
  /\ UNCHANGED <<broker, counters, requests, faultsLeft>>

\* The application runs the callbacks for a new assignment: it gives up the
\* revoked partitions and takes the added ones (N-REC-06..08).
ClientReconciles(c) ==
  /\ client[c].reconciling
  /\ client' = [client EXCEPT ![c] = AfterCallbacks(@)]
  /\ UNCHANGED <<broker, counters, net, faultsLeft>>

\* A client stops waiting for an answer that cannot come any more. Its next
\* heartbeat is a full one (N-ERR-06).
ClientTimesOut(c) ==
  /\ client[c].waiting
  /\ ~ExpectsAnswer(c)
  /\ client' = [client EXCEPT ![c] = AfterNoAnswer(@)]
  /\ StopWaiting(c, {})
  /\ UNCHANGED <<counters, faultsLeft>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: coordinator and log.                                            *)
(***************************************************************************)

\* The coordinator handles a heartbeat of a member by sections 7.3 to 7.6 of the
\* rules.
CoordinatorHandlesHeartbeat ==
  /\ \E r \in {q \in requests : q.epoch >= 0} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ \E T \in TargetsFor(group, r, existing) :
            LET w == HandleHeartbeat(group, r, existing, T)
            IN UpdateGroup(w.g, AnswersTo(r, w.y))
  /\ UNCHANGED <<counters, client, faultsLeft>>

\* The coordinator handles a leave heartbeat (M-LEAVE-01..05).
CoordinatorHandlesLeave ==
  /\ \E r \in {q \in requests : q.epoch < 0} :
       /\ requests' = requests \ {r}
       /\ UpdateGroup(HandleLeave(group, r, existing), {})
  /\ UNCHANGED <<counters, client, faultsLeft>>

\* The log replicates its oldest open batch, which releases the answers that
\* waited for it (F-RT-04).
AppendSucceeds ==
  /\ unreplicated # << >>
  /\ log' = Head(unreplicated).hard
  /\ replies' = replies \cup Head(unreplicated).answers
  /\ unreplicated' = Tail(unreplicated)
  /\ UNCHANGED <<group, counters, client, requests, faultsLeft>>

\* The assignment interval ends (M-TGT-08).
IntervalPasses ==
  /\ group.blocked
  /\ group' = [group EXCEPT !.blocked = FALSE]
  /\ UNCHANGED <<log, unreplicated, counters, client, net, faultsLeft>>

\* The session timer fences an abandoned member m (M-TMR-01).
SessionTimerFires(m) ==
  /\ m \in group.sessionTimers
  /\ IsAbandoned(m)
  /\ UpdateGroup(SessionExpired(group, m, existing), {})
  /\ UNCHANGED <<counters, client, requests, faultsLeft>>

\* The rebalance timer of an abandoned member m fires (M-TMR-02).
RebalanceTimerFires(m) ==
  /\ m \in DOMAIN group.rebalanceTimers
  /\ IsAbandoned(m)
  /\ UpdateGroup(RebalanceExpired(group, m, existing), {})
  /\ UNCHANGED <<counters, client, requests, faultsLeft>>
=============================================================================
