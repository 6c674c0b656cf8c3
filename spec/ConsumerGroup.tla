---------------------------- MODULE ConsumerGroup ---------------------------
(***************************************************************************)
(* How a consumer group (KIP-848) shares partitions: coordinator, members, *)
(* network and log as one closed system. docs/closed-system.md, part two,  *)
(* is its contract; Fencepost's model builds the same graph from it.       *)
(*                                                                         *)
(* System (ConsumerSystem) is what the protocol does; Environment is what  *)
(* happens to it. Only System is fair.                                     *)
(***************************************************************************)
EXTENDS ConsumerSystem

IsRunning(c) == client[c].state \in {"joining", "member"}

Present == DOMAIN group.members

\* c is a client of the group: its member has not been fenced, or it has not
\* been a member yet.
IsInGroup(c) == IsRunning(c) /\ client[c].memberId \in Present

\* Whether a commit for p, sent now with the epoch that c has, would be accepted
\* (M-PE-08, O-COMMIT-32).
CommitIsAccepted(c, p) ==
  /\ IsInGroup(c)
  /\ client[c].epoch > 0
  /\ LET m == group.members[client[c].memberId]
     IN \/ client[c].epoch = m.epoch
        \/ client[c].epoch < m.epoch /\ OlderEpochMayCommit(m, client[c].epoch, p)

(***************************************************************************)
(* Environment: clients come and go.                                       *)
(***************************************************************************)

\* An operator starts a client that is down, as a new process with a new id
\* (N-HB-08). One id must be left.
ClientStarts(c) ==
  /\ "ClientStarts" \in Allowed
  /\ client[c].state = "down"
  /\ idsUsed < Len(MemberIds)
  /\ idsUsed' = idsUsed + 1
  /\ client' = [client EXCEPT ![c] = JoiningClient(MemberIds[idsUsed + 1], InstanceOf[c])]
  /\ UNCHANGED <<broker, existing, net, faultsLeft>>

\* A running client crashes, without a message to anyone.
ClientCrashes(c) ==
  /\ Fault("ClientCrashes")
  /\ IsRunning(c)
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ StopWaiting(c, {})
  /\ UNCHANGED counters

\* A running client leaves and ends: a dynamic one permanently, a static one for
\* a while (N-TR-07, N-HB-09).
ClientLeaves(c) ==
  /\ Fault("ClientLeaves")
  /\ IsRunning(c)
  /\ LET p == client[c]
     IN StopWaiting(c, {LeaveRequest(c, p, IF p.instanceId = "" THEN -1 ELSE -2)})
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ UNCHANGED counters

\* A running static client leaves permanently (N-HB-09).
ClientLeavesPermanently(c) ==
  /\ Fault("ClientLeavesPermanently")
  /\ IsRunning(c)
  /\ client[c].instanceId # ""
  /\ StopWaiting(c, {LeaveRequest(c, client[c], -1)})
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ UNCHANGED counters

\* A waiting client reaches its request timeout or loses its connection
\* (N-ERR-06).
ClientGivesUp(c) ==
  /\ Fault("ClientGivesUp")
  /\ client[c].waiting
  /\ client' = [client EXCEPT ![c] = AfterNoAnswer(@)]
  /\ StopWaiting(c, {})
  /\ UNCHANGED counters

\* A client that keeps its member id returns under another instance id
\* (M-STATIC-01). No Java client does this.
ClientChangesInstance(c) ==
  /\ Fault("ClientChangesInstance")
  /\ IsRunning(c)
  /\ NewInstanceOf[c] \notin {"", client[c].instanceId}
  /\ client' = [client EXCEPT ![c] = JoiningClient(@.memberId, NewInstanceOf[c])]
  /\ StopWaiting(c, {})
  /\ UNCHANGED counters

\* The partitions that the application of c commits: those that it believes to own.
Committed(c) == IF IsRunning(c) /\ client[c].epoch > 0 THEN client[c].owned ELSE {}

\* The application commits something that its client owns.
ClientCommits(c) ==
  /\ Commits(Committed(c), LAMBDA p : CommitIsAccepted(c, p), TRUE)
  /\ UNCHANGED vars

\* The application commits something that its client believes to own but has
\* lost. The coordinator refuses the commit.
ClientCommitIsRejected(c) ==
  /\ Commits(Committed(c), LAMBDA p : CommitIsAccepted(c, p), FALSE)
  /\ UNCHANGED vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment: network, clocks, log, topic.                               *)
(***************************************************************************)

\* The network loses a request whose sender still waits for the answer.
RequestLost ==
  /\ LoseRequest
  /\ UNCHANGED <<broker, counters, client>>

\* The network will deliver a request a second time.
RequestDuplicated ==
  /\ CopyRequest
  /\ UNCHANGED <<broker, counters, client>>

\* The network loses a reply.
ReplyLost ==
  /\ LoseReply
  /\ UNCHANGED <<broker, counters, client>>

\* The session timer of m fires although its client lives, but stalls. It fences
\* m.
SessionTimerFiresEarly(m) ==
  /\ FiresEarly("SessionTimerFiresEarly", m \in group.sessionTimers, IsAbandoned(m))
  /\ UpdateGroup(SessionExpired(group, m, existing), {})
  /\ UNCHANGED <<counters, client, requests>>

\* The rebalance timer of m fires although its client lives, but is slow to
\* revoke (M-TMR-02).
RebalanceTimerFiresEarly(m) ==
  /\ FiresEarly("RebalanceTimerFiresEarly",
                m \in DOMAIN group.rebalanceTimers, IsAbandoned(m))
  /\ UpdateGroup(RebalanceExpired(group, m, existing), {})
  /\ UNCHANGED <<counters, client, requests>>

\* The group after a refused append is the previous one (INV-ATOM-01).
Reverted(g) == group

\* The log refuses the records of a heartbeat (F-RT-08).
AppendFails ==
  /\ Fault("AppendFails")
  /\ \E r \in {q \in requests : q.epoch >= 0} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ \E T \in TargetsFor(group, r, existing) :
            LET w == HandleHeartbeat(group, r, existing, T)
            IN /\ NeedsAppend(w.g)
               /\ group' = Reverted(w.g)
       /\ replies' = replies \cup AnswersTo(r, Error("COORDINATOR_NOT_AVAILABLE"))
  /\ UNCHANGED <<log, unreplicated, counters, client>>

\* The log refuses the records of a leave. The member stays, and its client does
\* not send the leave again (N-HB-09).
LeaveAppendFails ==
  /\ Fault("LeaveAppendFails")
  /\ \E r \in {q \in requests : q.epoch < 0} :
       /\ requests' = requests \ {r}
       /\ NeedsAppend(HandleLeave(group, r, existing))
       /\ group' = Reverted(HandleLeave(group, r, existing))
  /\ UNCHANGED <<log, unreplicated, counters, client, replies>>

\* Whether the interval runs after a fail-over. In an empty group it does not
\* run; it may run in a group with members that the fail-over brings back.
MayBeBlocked == IF IsUnassigned(group) THEN {FALSE, Interval} ELSE {group.blocked}

\* The state in the log if the first k open batches survive.
Surviving(k) == IF k = 0 THEN log ELSE unreplicated[k].hard

\* Another broker becomes the coordinator. The first k open batches survive
\* (F-LOAD-01); the rest and all soft state is lost (F-SURV-02, 03).
CoordinatorFailsOver ==
  /\ Fault("CoordinatorFailsOver")
  /\ \E k \in 0..Len(unreplicated) :
       /\ log' = Surviving(k)
       /\ \E b \in MayBeBlocked : group' = Loaded(Surviving(k), b)
  /\ unreplicated' = << >>
  /\ replies' = replies \cup {To(y.to, Error("NOT_COORDINATOR")) : y \in WaitingAnswers}
  /\ UNCHANGED <<counters, client, requests>>

\* An operator adds a partition, up to the bound (M-META-03).
TopicGrows ==
  /\ Fault("TopicGrows")
  /\ existing < Len(Partitions)
  /\ existing' = existing + 1
  /\ UNCHANGED <<broker, idsUsed, client, net>>

-----------------------------------------------------------------------------
System ==
  \/ AppendSucceeds
  \/ CoordinatorHandlesHeartbeat
  \/ CoordinatorHandlesLeave
  \/ ClientReceivesReply
  \/ IntervalPasses
  \/ \E c \in Clients : ClientSendsHeartbeat(c)
  \/ \E c \in Clients : ClientReconciles(c)
  \/ \E c \in Clients : ClientTimesOut(c)
  \/ \E m \in Ids : SessionTimerFires(m)
  \/ \E m \in Ids : RebalanceTimerFires(m)

Environment ==
  \/ RequestLost
  \/ RequestDuplicated
  \/ ReplyLost
  \/ AppendFails
  \/ LeaveAppendFails
  \/ CoordinatorFailsOver
  \/ TopicGrows
  \/ \E c \in Clients : ClientStarts(c)
  \/ \E c \in Clients : ClientCrashes(c)
  \/ \E c \in Clients : ClientLeaves(c)
  \/ \E c \in Clients : ClientLeavesPermanently(c)
  \/ \E c \in Clients : ClientGivesUp(c)
  \/ \E c \in Clients : ClientCommits(c)
  \/ \E c \in Clients : ClientCommitIsRejected(c)
  \/ \E c \in Clients : ClientChangesInstance(c)
  \/ \E m \in Ids : SessionTimerFiresEarly(m)
  \/ \E m \in Ids : RebalanceTimerFiresEarly(m)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars

\* ENABLED <<System>>_vars, written out guard by guard. TLC computes ENABLED by
\* trial, which takes a second per state. MCConsumerFairness checks that the two
\* are equal.
SystemCanMove ==
  \/ unreplicated # << >>
  \/ \E r \in requests : r.epoch < 0 \/ Deliverable(requests, r)
  \/ replies # {}
  \/ group.blocked
  \/ \E c \in Clients :
       \/ client[c].state \in {"joining", "member"} /\ ~client[c].waiting
          /\ MustSendHeartbeat(c)
       \/ client[c].reconciling
       \/ client[c].waiting /\ ~ExpectsAnswer(c)
  \/ \E m \in group.sessionTimers \cup DOMAIN group.rebalanceTimers : IsAbandoned(m)

(***************************************************************************)
(* As long as the system can do something, it does something: WF(System),  *)
(* with its ENABLED written out. The environment is not fair, and no step  *)
(* of the system has priority over another. A heartbeat that brings no     *)
(* news is not a step, so members at rest do not keep the others waiting.  *)
(***************************************************************************)
FairSpec == Spec /\ ([]<>~SystemCanMove \/ []<><<System>>_vars)
=============================================================================
