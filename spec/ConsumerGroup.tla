---------------------------- MODULE ConsumerGroup ---------------------------
(***************************************************************************)
(* How a consumer group (KIP-848) shares partitions: coordinator, members, *)
(* network and log as one closed system. docs/closed-system.md, part two,  *)
(* is its contract; Fencepost's model builds the same graph from it.       *)
(*                                                                         *)
(* System (ConsumerSystem) is what the protocol does, Environment what     *)
(* happens to it. Fairness is on System alone.                             *)
(***************************************************************************)
EXTENDS ConsumerSystem

Runs(c) == client[c].state \in {"joining", "member"}

Present == DOMAIN group.members

\* c is a client of the group: nobody has fenced its member, or it has not yet
\* been a member at all.
Belongs(c) == Runs(c) /\ client[c].memberId \in Present

\* A commit sent now, with the epoch that c has, for p (M-PE-08, O-COMMIT-32).
CommitIsAccepted(c, p) ==
  /\ Belongs(c)
  /\ client[c].epoch > 0
  /\ LET m == group.members[client[c].memberId]
     IN \/ client[c].epoch = m.epoch
        \/ client[c].epoch < m.epoch /\ OlderEpochCommits(m, client[c].epoch, p)

(***************************************************************************)
(* Environment: clients come and go.                                       *)
(***************************************************************************)

\* WHO an operator. WHEN the client is down and there is an id for it.
\* DOES start it: a new process with an id of its own (N-HB-08).
ClientStarts(c) ==
  /\ "ClientStarts" \in Allowed
  /\ client[c].state = "down"
  /\ idsUsed < Len(MemberIds)
  /\ idsUsed' = idsUsed + 1
  /\ client' = [client EXCEPT ![c] = Starting(MemberIds[idsUsed + 1], InstanceOf[c])]
  /\ UNCHANGED <<broker, existing, net, faultsLeft>>

\* WHO a client. WHEN it runs. DOES die without a word.
ClientCrashes(c) ==
  /\ Fault("ClientCrashes")
  /\ Runs(c)
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ StopsWaiting(c, {})
  /\ UNCHANGED world

\* WHO a client. WHEN it runs. DOES leave and end: a dynamic one for good, a
\* static one for a while (N-TR-07, N-HB-09).
ClientLeaves(c) ==
  /\ Fault("ClientLeaves")
  /\ Runs(c)
  /\ LET p == client[c]
     IN StopsWaiting(c, {LeaveRequest(c, p, IF p.instanceId = "" THEN -1 ELSE -2)})
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ UNCHANGED world

\* WHO a static client. WHEN it runs. DOES leave for good (N-HB-09).
ClientQuits(c) ==
  /\ Fault("ClientQuits")
  /\ Runs(c)
  /\ client[c].instanceId # ""
  /\ StopsWaiting(c, {LeaveRequest(c, client[c], -1)})
  /\ client' = [client EXCEPT ![c] = Ended("down")]
  /\ UNCHANGED world

\* WHO a client. WHEN it waits. DOES lose patience, or its connection (N-ERR-06).
ClientGivesUp(c) ==
  /\ Fault("ClientGivesUp")
  /\ client[c].waiting
  /\ client' = [client EXCEPT ![c] = AfterSilence(@)]
  /\ StopsWaiting(c, {})
  /\ UNCHANGED world

\* WHO a client that keeps its member id. WHEN it runs. DOES come back under
\* another instance id (M-STATIC-01); no Java client does.
ClientChangesInstance(c) ==
  /\ Fault("ClientChangesInstance")
  /\ Runs(c)
  /\ NewInstanceOf[c] \notin {"", client[c].instanceId}
  /\ client' = [client EXCEPT ![c] = Starting(@.memberId, NewInstanceOf[c])]
  /\ StopsWaiting(c, {})
  /\ UNCHANGED world

\* WHO the application. WHEN its client owns something for which it would be heard.
\* DOES commit. What becomes of the offset is told by Offsets; nothing changes here.
ClientCommits(c) ==
  /\ "ClientCommits" \in Allowed
  /\ \E p \in client[c].owned : CommitIsAccepted(c, p)
  /\ UNCHANGED vars

\* WHO the application. WHEN its client believes to own what it has lost meanwhile.
\* DOES commit, and is refused.
ClientCommitsInVain(c) ==
  /\ "ClientCommits" \in Allowed
  /\ Runs(c)
  /\ client[c].epoch > 0
  /\ \E p \in client[c].owned : ~CommitIsAccepted(c, p)
  /\ UNCHANGED vars

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment: network, clocks, log, topic.                               *)
(***************************************************************************)

\* WHO the network. WHEN somebody waits for the answer. DOES lose the request.
RequestLost ==
  /\ Fault("RequestLost")
  /\ \E r \in {q \in requests : q.heard} : requests' = requests \ {r}
  /\ UNCHANGED <<broker, world, client, replies>>

\* WHO the network. DOES deliver a request once more, some time.
RequestDuplicated ==
  /\ Fault("RequestDuplicated")
  /\ \E r \in {q \in requests : q.heard} :
       requests' = requests \cup {Duplicate(r)}
  /\ UNCHANGED <<broker, world, client, replies>>

\* WHO the network. DOES lose a reply.
ReplyLost ==
  /\ Fault("ReplyLost")
  /\ \E y \in replies : replies' = replies \ {y}
  /\ UNCHANGED <<broker, world, client, requests>>

\* WHO the session timer of m. WHEN its client lives, but stalls. DOES fence it.
SessionTimerFiresEarly(m) ==
  /\ Fault("SessionTimerFiresEarly")
  /\ m \in group.sessionTimers
  /\ ~Abandoned(m)
  /\ Becomes(SessionExpired(group, m, existing), {})
  /\ UNCHANGED <<world, client, requests>>

\* WHO the rebalance timer of m. WHEN its client lives, but is slow to revoke.
\* DOES M-TMR-02.
RebalanceTimerFiresEarly(m) ==
  /\ Fault("RebalanceTimerFiresEarly")
  /\ m \in DOMAIN group.rebalanceTimers
  /\ ~Abandoned(m)
  /\ Becomes(RebalanceExpired(group, m, existing), {})
  /\ UNCHANGED <<world, client, requests>>

\* What a refused append leaves of g: all as before (INV-ATOM-01); in Kafka, the
\* timers as the step set them (M-HB-13).
Reverted(g) ==
  IF ~fault_failed_append_loses_timers THEN group
  ELSE [group EXCEPT
          !.rebalanceTimers = g.rebalanceTimers,
          !.sessionTimers = g.sessionTimers \cap DOMAIN group.members]

\* WHO the log. WHEN a heartbeat is to be written. DOES refuse it (F-RT-08).
AppendFails ==
  /\ Fault("AppendFails")
  /\ \E r \in {q \in requests : q.epoch >= 0} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ \E T \in TargetsFor(group, r, existing) :
            LET w == Beat(group, r, existing, T)
            IN /\ Writes(w.g)
               /\ group' = Reverted(w.g)
       /\ replies' = replies \cup AnswersTo(r, Error("COORDINATOR_NOT_AVAILABLE"))
  /\ UNCHANGED <<log, unreplicated, world, client>>

\* WHO the log. WHEN a leave is to be written. DOES refuse it; the member stays,
\* and nobody sends the leave again (N-HB-09).
LeaveIsNotStored ==
  /\ Fault("LeaveIsNotStored")
  /\ \E r \in {q \in requests : q.epoch < 0} :
       /\ requests' = requests \ {r}
       /\ Writes(Leave(group, r, existing))
       /\ group' = Reverted(Leave(group, r, existing))
  /\ UNCHANGED <<log, unreplicated, world, client, replies>>

\* Whether the interval runs. Where the group is empty now, nobody looks at the
\* clock; it may still run for one that was not, if the fail-over brings that back.
MayBeBlocked == IF IsUnassigned(group) THEN {FALSE, Interval} ELSE {group.blocked}

\* What the log holds where the first k open batches survive.
Surviving(k) == IF k = 0 THEN log ELSE unreplicated[k].hard

\* WHO the cluster. DOES make another broker the coordinator: the first k open
\* batches survive (F-LOAD-01), the rest and all soft state is lost (F-SURV-02, 03).
CoordinatorFailsOver ==
  /\ Fault("CoordinatorFailsOver")
  /\ \E k \in 0..Len(unreplicated) :
       /\ log' = Surviving(k)
       /\ \E b \in MayBeBlocked : group' = Loaded(Surviving(k), b)
  /\ unreplicated' = << >>
  /\ replies' = replies \cup {To(y.to, Error("NOT_COORDINATOR")) : y \in Open}
  /\ UNCHANGED <<world, client, requests>>

\* WHO an operator. WHEN there may be more. DOES add a partition (M-META-03).
TopicGrows ==
  /\ Fault("TopicGrows")
  /\ existing < Len(Partitions)
  /\ existing' = existing + 1
  /\ UNCHANGED <<broker, idsUsed, client, net>>

-----------------------------------------------------------------------------
System ==
  \/ AppendSucceeds
  \/ CoordinatorGetsHeartbeat
  \/ CoordinatorGetsLeave
  \/ ClientGetsReply
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
  \/ LeaveIsNotStored
  \/ CoordinatorFailsOver
  \/ TopicGrows
  \/ \E c \in Clients : ClientStarts(c)
  \/ \E c \in Clients : ClientCrashes(c)
  \/ \E c \in Clients : ClientLeaves(c)
  \/ \E c \in Clients : ClientQuits(c)
  \/ \E c \in Clients : ClientGivesUp(c)
  \/ \E c \in Clients : ClientCommits(c)
  \/ \E c \in Clients : ClientCommitsInVain(c)
  \/ \E c \in Clients : ClientChangesInstance(c)
  \/ \E m \in Ids : SessionTimerFiresEarly(m)
  \/ \E m \in Ids : RebalanceTimerFiresEarly(m)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars

\* ENABLED <<System>>_vars, written out guard by guard: TLC works that out by
\* trial, which takes it a second a state. MCConsumerFairness holds the two equal.
SystemCanMove ==
  \/ unreplicated # << >>
  \/ \E r \in requests : r.epoch < 0 \/ Deliverable(requests, r)
  \/ replies # {}
  \/ group.blocked
  \/ \E c \in Clients :
       \/ client[c].state \in {"joining", "member"} /\ ~client[c].waiting
          /\ HasToSend(c)
       \/ client[c].reconciling
       \/ client[c].waiting /\ ~Expecting(c)
  \/ \E m \in group.sessionTimers \cup DOMAIN group.rebalanceTimers : Abandoned(m)

(***************************************************************************)
(* As long as the system can do something, it does something: WF(System)   *)
(* with its ENABLED written out. Nothing is fair about the environment,    *)
(* and nothing chooses between steps of the system. A heartbeat that       *)
(* brings no news is no step, so members that are content do not keep the  *)
(* others waiting.                                                         *)
(***************************************************************************)
FairSpec == Spec /\ ([]<>~SystemCanMove \/ []<><<System>>_vars)
=============================================================================
