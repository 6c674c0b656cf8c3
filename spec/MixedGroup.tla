----------------------------- MODULE MixedGroup -----------------------------
(***************************************************************************)
(* How a group is shared by members of both protocols, and how it is       *)
(* converted under them: coordinator, clients, network and log as one      *)
(* closed system. docs/closed-system.md, part three, is its contract;      *)
(* Fencepost's model builds the same graph from it.                        *)
(*                                                                         *)
(* System (MixedSystem) is what the protocols do, Environment what happens *)
(* to them. Fairness is on System alone.                                   *)
(***************************************************************************)
EXTENDS MixedSystem

RunsClassic(c)  == classic[c].state \notin {"down", "stopped"}
RunsConsumer(c) == consumer[c].state \notin {"down", "stopped"}
Runs(c) == RunsClassic(c) \/ RunsConsumer(c)
IsDown(c) == classic[c].state = "down" /\ consumer[c].state = "down"

IsConsumerGroup == group.protocol = "consumer"
IsClassicGroup  == group.protocol = "classic"

\* Members of a consumer group, of either protocol.
Present == DOMAIN group.consumer.members
Member(m) == group.consumer.members[m]

IdOf(c) == IF RunsConsumer(c) THEN consumer[c].memberId ELSE classic[c].memberId

\* What the application of c believes to own. Only one process runs.
Owned(c) == classic[c].owned \cup consumer[c].owned

(***************************************************************************)
(* Environment: clients come and go.                                       *)
(***************************************************************************)

\* WHO an operator. WHEN the client is down, and an id is left for a consumer.
\* DOES start a process of one protocol or the other: so a group is rolled (X-ROLL-02).
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
                            ConsumerMember!Starting(MemberIds[idsUsed + 1], InstanceOf[c])]
          /\ UNCHANGED classic
  /\ UNCHANGED <<broker, net, faultsLeft>>

\* The process of c is no more; more is what it sends at last.
Ends(c, more) ==
  /\ classic' = [classic EXCEPT ![c] = ClassicMember!Ended("down")]
  /\ consumer' = [consumer EXCEPT ![c] = ConsumerMember!Ended("down")]
  /\ StopsWaiting(c, more)

\* WHO a client. WHEN it runs. DOES die without a word.
ClientCrashes(c) ==
  /\ Fault("ClientCrashes")
  /\ Runs(c)
  /\ Ends(c, {})

\* What c says when it leaves: K-LEAVE-01 (a static one nothing), N-TR-07, N-HB-09.
Farewell(c) ==
  CASE RunsConsumer(c) ->
         {Consumer!LeaveRequest(c, consumer[c], IF InstanceOf[c] = "" THEN -1 ELSE -2)}
    [] classic[c].memberId # "" /\ InstanceOf[c] = "" ->
         {Classic!LeaveRequest(c, classic[c].memberId)}
    [] OTHER -> {}

\* WHO a client. WHEN it runs, and has something to say. DOES leave and end: a
\* static one of the consumer protocol for a while.
ClientLeaves(c) ==
  /\ Fault("ClientLeaves")
  /\ Runs(c)
  /\ Farewell(c) # {}
  /\ Ends(c, Farewell(c))

\* WHO a client. WHEN it waits. DOES lose patience, or its connection.
ClientGivesUp(c) ==
  /\ Fault("ClientGivesUp")
  /\ Waiting(c)
  /\ GoesOn(c)
  /\ StopsWaiting(c, {})

\* A commit of c for p, sent now: K-OFF-02, O-COMMIT-25..28, 30..33, M-PE-08.
EpochCommits(m, epoch, p) ==
  \/ epoch = m.epoch
  \/ epoch < m.epoch /\ Consumer!OlderEpochCommits(m, epoch, p)

ClassicCommits(c, p) ==
  LET me == classic[c]
  IN IF IsClassicGroup
     THEN Classic!CommitError(group.classic, me.memberId, InstanceOf[c],
                              me.generation) = "NONE"
     ELSE me.memberId \in Present /\ EpochCommits(Member(me.memberId), me.generation, p)

ConsumerCommits(c, p) ==
  LET me == consumer[c]
  IN me.memberId \in Present /\ EpochCommits(Member(me.memberId), me.epoch, p)

\* K-OFF-02, N-CMT-01: it commits with the epoch of its assignment, or not at all.
SendsCommits(c) ==
  \/ /\ RunsClassic(c)
     /\ classic[c].state \in {"stable", "unjoined"}
     /\ classic[c].generation = classic[c].ownedGeneration
  \/ RunsConsumer(c) /\ consumer[c].epoch > 0

CommitIsAccepted(c, p) ==
  /\ SendsCommits(c)
  /\ IF RunsClassic(c) THEN ClassicCommits(c, p) ELSE ConsumerCommits(c, p)

\* WHO the application. WHEN its client owns something for which it would be heard.
\* DOES commit. What becomes of the offset is told by Offsets; nothing changes here.
ClientCommits(c) ==
  /\ "ClientCommits" \in Allowed
  /\ \E p \in Owned(c) : CommitIsAccepted(c, p)
  /\ UNCHANGED vars

\* WHO the application. WHEN its client believes to own what it has lost meanwhile,
\* or is in a rebalance. DOES commit, and is refused.
ClientCommitsInVain(c) ==
  /\ "ClientCommits" \in Allowed
  /\ SendsCommits(c)
  /\ \E p \in Owned(c) : ~CommitIsAccepted(c, p)
  /\ UNCHANGED vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment: network, clocks, cluster.                                  *)
(***************************************************************************)

\* WHO the network. WHEN somebody waits for the answer. DOES lose the request.
RequestLost ==
  /\ Fault("RequestLost")
  /\ \E r \in {q \in requests : q.heard} : requests' = requests \ {r}
  /\ UNCHANGED <<broker, idsUsed, clients, replies>>

\* WHO the network. DOES deliver a request once more, some time.
RequestDuplicated ==
  /\ Fault("RequestDuplicated")
  /\ \E r \in {q \in requests : q.heard} :
       requests' = requests \cup {Duplicate(r)}
  /\ UNCHANGED <<broker, idsUsed, clients, replies>>

\* WHO the network. DOES lose a reply.
ReplyLost ==
  /\ Fault("ReplyLost")
  /\ \E y \in replies : replies' = replies \ {y}
  /\ UNCHANGED <<broker, idsUsed, clients, requests>>

\* WHO the join timer of a classic group. WHEN a live client is still missing.
\* DOES not wait for it.
JoinTimerFiresEarly ==
  /\ Fault("JoinTimerFiresEarly")
  /\ group.classic.joinTimer
  /\ ~JoinTimerIsDue
  /\ TimerDid(ClassicWorld(group, Classic!JoinExpired(group.classic)))

\* WHO the sync timer of a classic group. WHEN a live client has not synced.
\* DOES not wait for it.
SyncTimerFiresEarly ==
  /\ Fault("SyncTimerFiresEarly")
  /\ group.classic.syncTimer
  /\ ~SyncTimerIsDue
  /\ TimerDid(ClassicWorld(group, Classic!SyncExpired(group.classic)))

\* WHO the session timer of m. WHEN its client lives, but stalls. DOES as when due.
SessionTimerFiresEarly(m) ==
  /\ Fault("SessionTimerFiresEarly")
  /\ m \in SessionTimers(group)
  /\ ~Abandoned(m)
  /\ TimerDid(SessionExpired(group, m))

\* WHO the rebalance timer of m. WHEN its client lives, but is slow to revoke.
RebalanceTimerFiresEarly(m) ==
  /\ Fault("RebalanceTimerFiresEarly")
  /\ m \in DOMAIN group.consumer.rebalanceTimers
  /\ ~Abandoned(m)
  /\ TimerDid(RebalanceExpired(group, m))

\* WHO the join timer of m. WHEN its client lives, but is slow to join again.
MemberJoinTimerFiresEarly(m) ==
  /\ Fault("MemberJoinTimerFiresEarly")
  /\ m \in group.joinTimers
  /\ ~Abandoned(m)
  /\ TimerDid(JoinExpired(group, m))

\* WHO the sync timer of m. WHEN its client lives, but is slow to sync.
MemberSyncTimerFiresEarly(m) ==
  /\ Fault("MemberSyncTimerFiresEarly")
  /\ m \in group.syncTimers
  /\ ~Abandoned(m)
  /\ TimerDid(SyncExpired(group, m))

\* WHO the cluster. DOES make another broker the coordinator: all soft state is
\* lost, and who was parked is told (F-LOAD-01, F-UNLOAD-01).
CoordinatorFailsOver ==
  /\ Fault("CoordinatorFailsOver")
  /\ group' = Loaded(log, group.consumer.blocked)
  /\ replies' = replies \cup Classic!Unloaded(group.classic).out
  /\ UNCHANGED <<log, idsUsed, clients, requests>>

-----------------------------------------------------------------------------
System ==
  \/ CoordinatorGetsJoin
  \/ CoordinatorGetsSync
  \/ CoordinatorGetsLeaveGroup
  \/ CoordinatorGetsHeartbeat
  \/ CoordinatorGetsLeave
  \/ ClientGetsJoinReply
  \/ ClientGetsSyncReply
  \/ ClientGetsReply
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
  \/ \E c \in Clients : ClientCommitsInVain(c)
  \/ \E m \in Ids : SessionTimerFiresEarly(m)
  \/ \E m \in Ids : RebalanceTimerFiresEarly(m)
  \/ \E m \in Ids : MemberJoinTimerFiresEarly(m)
  \/ \E m \in Ids : MemberSyncTimerFiresEarly(m)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars

\* A JoinGroup can be handled: there is an id for it if it needs one.
HasAnId(r) == ~NeedsId(group, r, InstanceOf[r.from]) \/ idsUsed < Len(MemberIds)

IsLeave(r) == IF IsClassic(r) THEN r.api = "LeaveGroup" ELSE r.epoch < 0

\* ENABLED <<System>>_vars, written out guard by guard: TLC works that out by
\* trial, which takes it a second a state. MCMixedFairness holds the two equal.
SystemCanMove ==
  \/ \E r \in requests :
       IsLeave(r) \/ (Deliverable(requests, r) /\ (IsApi(r, "JoinGroup") => HasAnId(r)))
  \/ replies # {}
  \/ group.consumer.blocked
  \/ group.classic.joinTimer /\ JoinTimerIsDue
  \/ group.classic.syncTimer /\ SyncTimerIsDue
  \/ \E c \in Clients :
       \/ classic[c].state = "unjoined"
       \/ HeartbeatMatters(c)
       \/ CanSendHeartbeat(c)
       \/ consumer[c].reconciling
       \/ Waiting(c) /\ ~Expecting(c)
  \/ \E m \in SessionTimers(group) \cup DOMAIN group.consumer.rebalanceTimers
             \cup group.joinTimers \cup group.syncTimers : Abandoned(m)

(***************************************************************************)
(* As long as the system can do something, it does something: WF(System)   *)
(* with its ENABLED written out. Nothing is fair about the environment,    *)
(* and nothing chooses between steps of the system. A heartbeat that       *)
(* brings no news is no step, so members that are content do not keep the  *)
(* others waiting.                                                         *)
(***************************************************************************)
FairSpec == Spec /\ ([]<>~SystemCanMove \/ []<><<System>>_vars)
=============================================================================
