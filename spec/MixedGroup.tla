----------------------------- MODULE MixedGroup -----------------------------
(***************************************************************************)
(* How members of both protocols share a group, and how it is converted    *)
(* while they use it: coordinator, clients, network and log as one closed  *)
(* system. docs/closed-system.md, part three, is its contract; Fencepost's *)
(* model builds the same graph from it.                                    *)
(*                                                                         *)
(* System (MixedSystem) is what the protocols do; Environment is what      *)
(* happens to them. Only System is fair.                                   *)
(***************************************************************************)
EXTENDS MixedSystem

RunsClassic(c)  == classic[c].state \notin {"down", "stopped"}
RunsConsumer(c) == consumer[c].state \notin {"down", "stopped"}
IsRunning(c) == RunsClassic(c) \/ RunsConsumer(c)
IsDown(c) == classic[c].state = "down" /\ consumer[c].state = "down"

IsConsumerGroup == group.protocol = "consumer"
IsClassicGroup  == group.protocol = "classic"

\* Members of a consumer group, of either protocol.
Present == DOMAIN group.consumer.members
Member(m) == group.consumer.members[m]

MemberIdOf(c) == IF RunsConsumer(c) THEN consumer[c].memberId ELSE classic[c].memberId

\* The partitions that the application of c believes to own. Only one of the two
\* processes runs.
Owned(c) == classic[c].owned \cup consumer[c].owned

(***************************************************************************)
(* Environment: clients come and go.                                       *)
(***************************************************************************)

\* An operator starts a process of one protocol or the other for a client that
\* is down; so a group is rolled (X-ROLL-02). A consumer process needs an id
\* that is left.
ClientStarts(c, protocol) ==
  /\ "ClientStarts" \in Allowed
  /\ protocol \in StartsAs[c]
  /\ IsDown(c)
  /\ IF protocol = "classic"
     THEN /\ classic' = [classic EXCEPT ![c].state = "unjoined"]
          /\ UNCHANGED <<idsUsed, consumer>>
     ELSE /\ idsUsed < Len(MemberIds)
          /\ idsUsed' = idsUsed + 1
          /\ consumer' = [consumer EXCEPT ![c] =
                            ConsumerMember!JoiningClient(MemberIds[idsUsed + 1], InstanceOf[c])]
          /\ UNCHANGED classic
  /\ UNCHANGED <<broker, net, faultsLeft>>

\* The process of c ends; more is what it sends last.
StopProcess(c, more) ==
  /\ classic' = [classic EXCEPT ![c] = ClassicMember!Ended("down")]
  /\ consumer' = [consumer EXCEPT ![c] = ConsumerMember!Ended("down")]
  /\ StopWaiting(c, more)

\* A running client crashes, without a message to anyone.
ClientCrashes(c) ==
  /\ Fault("ClientCrashes")
  /\ IsRunning(c)
  /\ StopProcess(c, {})

\* The leave request of c (K-LEAVE-01, N-TR-07, N-HB-09). A static classic
\* client sends none.
LeaveRequests(c) ==
  CASE RunsConsumer(c) ->
         {Consumer!LeaveRequest(c, consumer[c], IF InstanceOf[c] = "" THEN -1 ELSE -2)}
    [] classic[c].memberId # "" /\ InstanceOf[c] = "" ->
         {Classic!LeaveRequest(c, classic[c].memberId)}
    [] OTHER -> {}

\* A running client that has a leave request leaves and ends; a static one of
\* the consumer protocol leaves for a while.
ClientLeaves(c) ==
  /\ Fault("ClientLeaves")
  /\ IsRunning(c)
  /\ LeaveRequests(c) # {}
  /\ StopProcess(c, LeaveRequests(c))

\* A waiting client reaches its request timeout or loses its connection.
ClientGivesUp(c) ==
  /\ Fault("ClientGivesUp")
  /\ IsWaiting(c)
  /\ ResumeClient(c)
  /\ StopWaiting(c, {})

\* Whether a commit of c for p, sent now, would be accepted (K-OFF-02,
\* O-COMMIT-25..28, 30..33, M-PE-08).
EpochMayCommit(m, epoch, p) ==
  \/ epoch = m.epoch
  \/ epoch < m.epoch /\ Consumer!OlderEpochMayCommit(m, epoch, p)

ClassicMayCommit(c, p) ==
  LET me == classic[c]
  IN IF IsClassicGroup
     THEN Classic!CommitError(group.classic, me.memberId, InstanceOf[c],
                              me.generation) = "NONE"
     ELSE me.memberId \in Present /\ EpochMayCommit(Member(me.memberId), me.generation, p)

ConsumerMayCommit(c, p) ==
  LET me == consumer[c]
  IN me.memberId \in Present /\ EpochMayCommit(Member(me.memberId), me.epoch, p)

\* A client commits with the epoch of its assignment, or not at all (K-OFF-02,
\* N-CMT-01).
SendsCommits(c) ==
  \/ /\ RunsClassic(c)
     /\ classic[c].state \in {"stable", "unjoined"}
     /\ classic[c].generation = classic[c].ownedGeneration
  \/ RunsConsumer(c) /\ consumer[c].epoch > 0

CommitIsAccepted(c, p) ==
  /\ SendsCommits(c)
  /\ IF RunsClassic(c) THEN ClassicMayCommit(c, p) ELSE ConsumerMayCommit(c, p)

\* The partitions that the application of c commits: those that it believes to own.
Committed(c) == IF SendsCommits(c) THEN Owned(c) ELSE {}

\* The application commits something that its client owns.
ClientCommits(c) ==
  /\ Commits(Committed(c), LAMBDA p : CommitIsAccepted(c, p), TRUE)
  /\ UNCHANGED vars

\* The application commits something that its client believes to own but has
\* lost, or commits in a rebalance. The coordinator refuses the commit.
ClientCommitIsRejected(c) ==
  /\ Commits(Committed(c), LAMBDA p : CommitIsAccepted(c, p), FALSE)
  /\ UNCHANGED vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment: network, clocks, cluster.                                  *)
(***************************************************************************)

\* The network loses a request whose sender still waits for the answer.
RequestLost ==
  /\ LoseRequest
  /\ UNCHANGED <<broker, idsUsed, clients>>

\* The network will deliver a request a second time.
RequestDuplicated ==
  /\ CopyRequest
  /\ UNCHANGED <<broker, idsUsed, clients>>

\* The network loses a reply.
ReplyLost ==
  /\ LoseReply
  /\ UNCHANGED <<broker, idsUsed, clients>>

\* The join timer of a classic group fires although a live client is still
\* missing.
JoinTimerFiresEarly ==
  /\ FiresEarly("JoinTimerFiresEarly", group.classic.joinTimer, JoinTimerIsDue)
  /\ TimerOutcomeApplied(ClassicOutcome(group, Classic!JoinExpired(group.classic)))

\* The sync timer of a classic group fires although a live client has not
\* synced.
SyncTimerFiresEarly ==
  /\ FiresEarly("SyncTimerFiresEarly", group.classic.syncTimer, SyncTimerIsDue)
  /\ TimerOutcomeApplied(ClassicOutcome(group, Classic!SyncExpired(group.classic)))

\* The session timer of m fires although its client lives, but stalls.
SessionTimerFiresEarly(m) ==
  /\ FiresEarly("SessionTimerFiresEarly", m \in SessionTimers(group), IsAbandoned(m))
  /\ TimerOutcomeApplied(SessionExpired(group, m))

\* The rebalance timer of m fires although its client lives, but is slow to
\* revoke.
RebalanceTimerFiresEarly(m) ==
  /\ FiresEarly("RebalanceTimerFiresEarly",
                m \in DOMAIN group.consumer.rebalanceTimers, IsAbandoned(m))
  /\ TimerOutcomeApplied(RebalanceExpired(group, m))

\* The join timer of m fires although its client lives, but is slow to rejoin.
MemberJoinTimerFiresEarly(m) ==
  /\ FiresEarly("MemberJoinTimerFiresEarly", m \in group.joinTimers, IsAbandoned(m))
  /\ TimerOutcomeApplied(JoinExpired(group, m))

\* The sync timer of m fires although its client lives, but is slow to sync.
MemberSyncTimerFiresEarly(m) ==
  /\ FiresEarly("MemberSyncTimerFiresEarly", m \in group.syncTimers, IsAbandoned(m))
  /\ TimerOutcomeApplied(SyncExpired(group, m))

\* Another broker becomes the coordinator: all soft state is lost, and parked
\* requests are answered (F-LOAD-01, F-UNLOAD-01).
CoordinatorFailsOver ==
  /\ Fault("CoordinatorFailsOver")
  /\ group' = Loaded(log, group.consumer.blocked)
  /\ replies' = replies \cup Classic!Unloaded(group.classic).out
  /\ UNCHANGED <<log, idsUsed, clients, requests>>

-----------------------------------------------------------------------------
System ==
  \/ CoordinatorHandlesJoin
  \/ CoordinatorHandlesSync
  \/ CoordinatorHandlesLeaveGroup
  \/ CoordinatorHandlesHeartbeat
  \/ CoordinatorHandlesLeave
  \/ ClientReceivesJoinReply
  \/ ClientReceivesSyncReply
  \/ ClientReceivesReply
  \/ IntervalPasses
  \/ JoinTimerFires
  \/ SyncTimerFires
  \/ \E c \in Clients : ClientSendsJoin(c)
  \/ \E c \in Clients : ClientHeartbeats(c)
  \/ \E c \in Clients : ClientSendsHeartbeat(c)
  \/ \E c \in Clients : ClientReconciles(c)
  \/ \E c \in Clients : ClientTimesOut(c)
  \/ \E m \in Ids : SessionTimerFires(m)
  \/ \E m \in Ids : RebalanceTimerFires(m)
  \/ \E m \in Ids : MemberJoinTimerFires(m)
  \/ \E m \in Ids : MemberSyncTimerFires(m)

Environment ==
  \/ RequestLost
  \/ RequestDuplicated
  \/ ReplyLost
  \/ JoinTimerFiresEarly
  \/ SyncTimerFiresEarly
  \/ CoordinatorFailsOver
  \/ \E c \in Clients, protocol \in Protocol : ClientStarts(c, protocol)
  \/ \E c \in Clients : ClientCrashes(c)
  \/ \E c \in Clients : ClientLeaves(c)
  \/ \E c \in Clients : ClientGivesUp(c)
  \/ \E c \in Clients : ClientCommits(c)
  \/ \E c \in Clients : ClientCommitIsRejected(c)
  \/ \E m \in Ids : SessionTimerFiresEarly(m)
  \/ \E m \in Ids : RebalanceTimerFiresEarly(m)
  \/ \E m \in Ids : MemberJoinTimerFiresEarly(m)
  \/ \E m \in Ids : MemberSyncTimerFiresEarly(m)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars

\* A JoinGroup can be handled: if it needs an id, one is left.
HasAnId(r) == ~NeedsId(group, r, InstanceOf[r.from]) \/ idsUsed < Len(MemberIds)

IsLeave(r) == IF IsClassic(r) THEN r.api = "LeaveGroup" ELSE r.epoch < 0

\* ENABLED <<System>>_vars, written out guard by guard. TLC computes ENABLED by
\* trial, which takes a second per state. MCMixedFairness checks that the two
\* are equal. A join timer that is only set again changes nothing (C-JOIN-46).
SystemCanMove ==
  \/ \E r \in requests :
       IsLeave(r) \/ (Deliverable(requests, r) /\ (r.api = "JoinGroup" => HasAnId(r)))
  \/ replies # {}
  \/ group.consumer.blocked
  \/ /\ group.classic.joinTimer /\ JoinTimerIsDue
     /\ Classic!JoinExpired(group.classic) # Classic!Outcome(group.classic)
  \/ group.classic.syncTimer /\ SyncTimerIsDue
  \/ \E c \in Clients :
       \/ classic[c].state = "unjoined"
       \/ ClassicHeartbeatHasEffect(c)
       \/ CanSendHeartbeat(c)
       \/ consumer[c].reconciling
       \/ IsWaiting(c) /\ ~ExpectsAnswer(c)
  \/ \E m \in SessionTimers(group) \cup DOMAIN group.consumer.rebalanceTimers
             \cup group.joinTimers \cup group.syncTimers : IsAbandoned(m)

(***************************************************************************)
(* As long as the system can do something, it does something: WF(System),  *)
(* with its ENABLED written out. The environment is not fair, and no step  *)
(* of the system has priority over another. A heartbeat that brings no     *)
(* news is not a step, so members at rest do not keep the others waiting.  *)
(***************************************************************************)
FairSpec == Spec /\ ([]<>~SystemCanMove \/ []<><<System>>_vars)
=============================================================================
