--------------------------- MODULE MixedConversion --------------------------
(***************************************************************************)
(* From a classic group to a consumer group and back (9.2, 9.5), as        *)
(* functions from an outcome to an outcome. An outcome is what one event   *)
(* has done so far:                                                        *)
(*    g    the group                                                       *)
(*    out  the replies sent                                                *)
(*    app  the classic records replicated                                  *)
(* The records of a consumer group follow from g.                          *)
(***************************************************************************)
EXTENDS MixedTypes

Outcome(g) == [g |-> g, out |-> {}, app |-> << >>]

Reply(w, to, y) == IF to \in Clients THEN [w EXCEPT !.out = @ \cup {y}] ELSE w

(***************************************************************************)
(* A step of a classic group. Its records are replicated at once, and so   *)
(* the steps that waited for them happen too (F-RT-04).                    *)
(***************************************************************************)
RECURSIVE Replicated(_, _)
Replicated(v, app) ==
  IF app = << >> THEN v
  ELSE LET u == Classic!Replicated(v.g, Head(app))
       IN Replicated([g |-> u.g, out |-> v.out \cup u.out], Tail(app))

Records(app) == [i \in 1..Len(app) |-> app[i].record]

ClassicOutcome(g, v) ==
  LET u == Replicated([g |-> v.g, out |-> v.out], v.app)
  IN [g |-> [g EXCEPT !.classic = u.g], out |-> u.out, app |-> Records(v.app)]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Upgrade.                                                                *)
(***************************************************************************)

\* The policy allows an upgrade (X-UP-02). The other conditions always hold
\* here.
MayUpgrade == Policy \in {"bidirectional", "upgrade"}

\* No protocol is selected before the first rebalance is over (X-UP-07). This
\* does not matter in a group that has lost its members since.
HasNoProtocol(g) == g.initial /\ DOMAIN g.members # {}

\* Every parked request is answered REBALANCE_IN_PROGRESS (X-UP-03).
AnswerParkedRequests(g) ==
  LET M == DOMAIN g.members
      Unparked == [g EXCEPT !.members = [m \in M |->
                     [@[m] EXCEPT !.awaitingJoin = "no", !.awaitingSync = "no"]]]
      JoinOf(m) == g.members[m].awaitingJoin
      SyncOf(m) == g.members[m].awaitingSync
      ToJoin(m) == Classic!JoinError(JoinOf(m), "REBALANCE_IN_PROGRESS", "")
      ToSync(m) == Classic!SyncReply(SyncOf(m), "REBALANCE_IN_PROGRESS", {})
  IN Classic!ReplyAll(Classic!ReplyAll(Classic!Outcome(Unparked), M, JoinOf, ToJoin),
                      M, SyncOf, ToSync)

\* The epochs start from the generation (X-UP-04).
UpgradedEpoch(g) == g.generationId

\* The claim of n to p takes precedence over that of m: it has a newer
\* generation, or the same one and n comes first.
ClaimsBefore(g, n, m, p) ==
  LET other  == g.members[n].metadata
      mine == g.members[m].metadata
  IN /\ p \in other.owned
     /\ \/ other.generation > mine.generation
        \/ other.generation = mine.generation /\ Classic!First({m, n}) = n

\* Whether p is the assignment of another member than m.
IsAssignedToAnother(g, m, p) ==
  \E n \in DOMAIN g.members \ {m} : p \in g.members[n].assignment

\* Partitions that m may still own beyond its assignment (X-UP-05 fixed). The
\* assignment lacks what m is about to give up in a cooperative rebalance, and
\* C-JOIN-42 blanks it.
ValidClaims(g, m) ==
  {p \in g.members[m].metadata.owned :
     /\ ~IsAssignedToAnother(g, m, p)
     /\ \A n \in DOMAIN g.members \ {m} : ~ClaimsBefore(g, n, m, p)}

\* Which members are converted, and with which partitions (X-UP-05). An
\* assignment of zero bytes counts as nothing (X-UP-06).
ConvertedMembers(g) == DOMAIN g.members
ConvertedPartitions(g, m) == g.members[m].assignment \cup ValidClaims(g, m)

\* The members whose session timers are started: all (X-UP-08).
StartedSessionTimers(M) == M

\* A converted member is STABLE at the generation (X-UP-05).
ConvertedMember(g, m) ==
  [instanceId |-> g.members[m].instanceId, epoch |-> UpgradedEpoch(g),
   previousEpoch |-> UpgradedEpoch(g), state |-> "STABLE",
   assigned |-> [p \in ConvertedPartitions(g, m) |-> UpgradedEpoch(g)],
   revoking |-> << >>]

\* The consumer group after an upgrade (X-UP-04, X-UP-05, X-UP-08).
Upgraded(g) ==
  LET M == ConvertedMembers(g)
      S == {g.members[m].instanceId : m \in M} \ {""}
  IN ConsumerGroup(
       [groupEpoch |-> UpgradedEpoch(g), assignmentEpoch |-> UpgradedEpoch(g),
        hashed |-> Size,
        members |-> [m \in M |-> ConvertedMember(g, m)],
        target |-> [m \in M |-> ConvertedPartitions(g, m)],
        instances |-> [i \in S |-> CHOOSE m \in M : g.members[m].instanceId = i],
        rebalanceTimers |-> << >>, sessionTimers |-> StartedSessionTimers(M), blocked |-> FALSE],
       [m \in M |-> g.members[m].metadata])

-----------------------------------------------------------------------------
(***************************************************************************)
(* Downgrade.                                                              *)
(***************************************************************************)

\* The policy allows a downgrade (X-DOWN-01).
MayDowngrade == Policy \in {"bidirectional", "downgrade"}

\* All members except those in L are classic, and some remain (X-DOWN-01). more:
\* how many come (X-DOWN-20).
Downgrades(g, L, more) ==
  LET rest == DOMAIN g.consumer.members \ L
  IN /\ rest \subseteq DOMAIN g.subscriptions
     /\ Cardinality(rest) + more > 0
     /\ MayDowngrade

\* m has its target, as of the assignment epoch (X-DOWN-22).
HasItsTarget(h, m) ==
  /\ h.members[m].state = "STABLE" /\ h.members[m].epoch = h.assignmentEpoch
  /\ DOMAIN h.members[m].assigned = Consumer!Stored(h, m)

\* Some member of M lacks its target, and would never learn of it if the classic
\* group were Stable at once (X-DOWN-22 fixed).
OwesPartitions(h, M) == \E m \in M : ~HasItsTarget(h, m)

\* A member keeps what it holds (X-DOWN-04).
AssignedInDowngrade(h, m) == Consumer!Holding(h.members[m])

\* A member as the classic group has it (X-DOWN-04).
ClassicMemberOf(g, m) ==
  [instanceId |-> g.consumer.members[m].instanceId,
   metadata |-> g.subscriptions[m],
   assignment |-> AssignedInDowngrade(g.consumer, m),
   isNew |-> FALSE, awaitingJoin |-> "no", awaitingSync |-> "no"]

\* The classic group of the members M (X-DOWN-03, X-DOWN-05).
StableClassicGroup(g, M, generation) ==
  [Classic!EmptyGroup EXCEPT
     !.state = "Stable", !.generationId = generation, !.leader = Classic!First(M),
     !.members = [m \in M |-> ClassicMemberOf(g, m)],
     !.sessionTimers = M]

\* Which timers of the consumer group stay armed: none (X-DOWN-06, X-DOWN-33).
RemainingTimers(timers) == {}

\* The group is replaced (X-DOWN-02). stable is the classic group in the log, w
\* the outcome that it leads to.
Downgraded(g, stable, w) ==
  LET v == ClassicOutcome([ClassicGroup(stable) EXCEPT
                             !.joinTimers = RemainingTimers(g.joinTimers),
                             !.syncTimers = RemainingTimers(g.syncTimers)], w)
  IN [v EXCEPT !.app = <<Classic!RecordOf(stable)>> \o @]

\* The members that stay when L go (X-DOWN-01), and the generation (X-DOWN-03).
RemainingMembers(g, L) == DOMAIN g.consumer.members \ L
DowngradedEpoch(g) == g.consumer.groupEpoch

\* A rebalance distributes the partitions of the others again (X-DOWN-06).
RebalanceAfterDowngrade(stable) == Classic!PrepareRebalance(Classic!Outcome(stable))

DowngradeWithout(g, L) ==
  LET stable == StableClassicGroup(g, RemainingMembers(g, L), DowngradedEpoch(g))
  IN Downgraded(g, stable, RebalanceAfterDowngrade(stable))

\* Member m goes, whichever protocol it speaks (M-LEAVE-03, X-LEAVE-03..05).
RemoveMember(g, m) ==
  IF Downgrades(g, {m}, 0) THEN DowngradeWithout(g, {m})
  ELSE Outcome([g EXCEPT !.consumer = Consumer!Fenced(@, m, Size),
                         !.subscriptions = Without(@, {m}),
                         !.joinTimers = @ \ {m}, !.syncTimers = @ \ {m}])
=============================================================================
