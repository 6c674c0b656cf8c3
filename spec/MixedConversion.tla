--------------------------- MODULE MixedConversion --------------------------
(***************************************************************************)
(* From a classic group to a consumer group and back (9.2, 9.5), as        *)
(* functions from a world to a world. A world is what one event has done   *)
(* so far:                                                                 *)
(*    g    the group                                                       *)
(*    out  the replies sent                                                *)
(*    app  the classic records replicated                                  *)
(* What a consumer group writes is seen from g.                            *)
(***************************************************************************)
EXTENDS MixedTypes

World(g) == [g |-> g, out |-> {}, app |-> << >>]

Reply(w, to, y) == IF to \in Clients THEN [w EXCEPT !.out = @ \cup {y}] ELSE w

(***************************************************************************)
(* A step of a classic group. What it appends is replicated at once, and   *)
(* what waited for that happens too (F-RT-04).                             *)
(***************************************************************************)
RECURSIVE Replicated(_, _)
Replicated(v, app) ==
  IF app = << >> THEN v
  ELSE LET u == Classic!Replicated(v.g, Head(app))
       IN Replicated([g |-> u.g, out |-> v.out \cup u.out], Tail(app))

Records(app) == [i \in 1..Len(app) |-> app[i].record]

ClassicWorld(g, v) ==
  LET u == Replicated([g |-> v.g, out |-> v.out], v.app)
  IN [g |-> [g EXCEPT !.classic = u.g], out |-> u.out, app |-> Records(v.app)]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Upgrade.                                                                *)
(***************************************************************************)

\* X-UP-02: the policy; the rest cannot happen here.
MayUpgrade == Policy \in {"bidirectional", "upgrade"}

\* X-UP-07: nothing has been selected before the first rebalance is over; nobody
\* asks for it in a group that has lost its members since.
HasNoProtocol(g) == g.initial /\ DOMAIN g.members # {}

\* X-UP-03
Released(g) ==
  LET M == DOMAIN g.members
      Free == [g EXCEPT !.members = [m \in M |->
                 [@[m] EXCEPT !.awaitingJoin = "no", !.awaitingSync = "no"]]]
      JoinOf(m) == g.members[m].awaitingJoin
      SyncOf(m) == g.members[m].awaitingSync
      ToJoin(m) == Classic!JoinError(JoinOf(m), "REBALANCE_IN_PROGRESS", "")
      ToSync(m) == Classic!SyncReply(SyncOf(m), "REBALANCE_IN_PROGRESS", {})
  IN Classic!ReplyAll(Classic!ReplyAll(Classic!World(Free), M, JoinOf, ToJoin),
                      M, SyncOf, ToSync)

\* X-UP-04
UpgradedEpoch(g) == g.generationId

\* The claim of n to p comes before that of m: newer, or of the first of two alike.
ClaimsBefore(g, n, m, p) ==
  LET its  == g.members[n].metadata
      mine == g.members[m].metadata
  IN /\ p \in its.owned
     /\ \/ its.generation > mine.generation
        \/ its.generation = mine.generation /\ Classic!First({m, n}) = n

\* X-UP-05 mended: what m may still own besides its assignment, which lacks what it
\* is about to give up in a cooperative rebalance, and is blanked by C-JOIN-42.
TakenOver(g, m) ==
  {p \in g.members[m].metadata.owned :
     \A n \in DOMAIN g.members \ {m} :
       p \notin g.members[n].assignment /\ ~ClaimsBefore(g, n, m, p)}

\* X-UP-05: who is converted, and with what; zero bytes count as nothing (X-UP-06).
Converted(g) == DOMAIN g.members
Brought(g, m) ==
  g.members[m].assignment \cup
  IF fault_upgrade_overlooks_owned THEN {} ELSE TakenOver(g, m)

\* X-UP-08
TimersOf(M) == M

\* X-UP-05
ConvertedMember(g, m) ==
  [instanceId |-> g.members[m].instanceId, epoch |-> UpgradedEpoch(g),
   previousEpoch |-> UpgradedEpoch(g), state |-> "STABLE",
   assigned |-> [p \in Brought(g, m) |-> UpgradedEpoch(g)],
   revoking |-> << >>]

\* X-UP-04, X-UP-05, X-UP-08
Upgraded(g) ==
  LET M == Converted(g)
      S == {g.members[m].instanceId : m \in M} \ {""}
  IN ConsumerGroup(
       [groupEpoch |-> UpgradedEpoch(g), assignmentEpoch |-> UpgradedEpoch(g),
        hashed |-> Size,
        members |-> [m \in M |-> ConvertedMember(g, m)],
        target |-> [m \in M |-> Brought(g, m)],
        instances |-> [i \in S |-> CHOOSE m \in M : g.members[m].instanceId = i],
        rebalanceTimers |-> << >>, sessionTimers |-> TimersOf(M), blocked |-> FALSE],
       [m \in M |-> g.members[m].metadata])

-----------------------------------------------------------------------------
(***************************************************************************)
(* Downgrade.                                                              *)
(***************************************************************************)

\* X-DOWN-01, by the policy.
MayDowngrade == Policy \in {"bidirectional", "downgrade"}

\* X-DOWN-01: everybody but those in L is classic. more: who comes (X-DOWN-20).
Downgrades(g, L, more) ==
  LET rest == DOMAIN g.consumer.members \ L
  IN /\ rest \subseteq DOMAIN g.subscriptions
     /\ Cardinality(rest) + more > 0
     /\ MayDowngrade

\* X-DOWN-22: m has its target, as of the assignment epoch.
HasItsTarget(h, m) ==
  /\ h.members[m].state = "STABLE" /\ h.members[m].epoch = h.assignmentEpoch
  /\ DOMAIN h.members[m].assigned = Consumer!Stored(h, m)

\* X-DOWN-22 mended: somebody of M does not, and nobody would tell it if the
\* classic group were Stable at once.
Owes(h, M) == ~fault_downgrade_owes /\ \E m \in M : ~HasItsTarget(h, m)

\* X-DOWN-04: in Kafka a member is assigned its target, whatever it holds.
AssignedInDowngrade(h, m) ==
  IF fault_downgrade_assigns_target THEN Consumer!Stored(h, m)
  ELSE Consumer!Holding(h.members[m])

\* X-DOWN-04
ClassicMemberOf(g, m) ==
  [instanceId |-> g.consumer.members[m].instanceId,
   metadata |-> g.subscriptions[m],
   assignment |-> AssignedInDowngrade(g.consumer, m),
   isNew |-> FALSE, awaitingJoin |-> "no", awaitingSync |-> "no"]

\* X-DOWN-03, X-DOWN-05: the classic group of the members M.
Stable(g, M, generation) ==
  [Classic!EmptyGroup EXCEPT
     !.state = "Stable", !.generationId = generation, !.leader = Classic!First(M),
     !.members = [m \in M |-> ClassicMemberOf(g, m)],
     !.sessionTimers = M]

\* X-DOWN-06, X-DOWN-33: which timers of the consumer group stay armed.
LeftTimers(timers) == IF fault_downgrade_leaves_timers THEN timers ELSE {}

\* X-DOWN-02; stable is the classic group that is logged, w what becomes of it.
Downgraded(g, stable, w) ==
  LET v == ClassicWorld([ClassicGroup(stable) EXCEPT
                           !.joinTimers = LeftTimers(g.joinTimers),
                           !.syncTimers = LeftTimers(g.syncTimers)], w)
  IN [v EXCEPT !.app = <<Classic!RecordOf(stable)>> \o @]

\* X-DOWN-01, X-DOWN-03: who stays when L go, and in which generation.
Rest(g, L) == DOMAIN g.consumer.members \ L
DowngradedEpoch(g) == g.consumer.groupEpoch

\* X-DOWN-06: what the others held is to be shared out.
Redistributed(stable) == Classic!PrepareRebalance(Classic!World(stable))

DowngradedWithout(g, L) ==
  LET stable == Stable(g, Rest(g, L), DowngradedEpoch(g))
  IN Downgraded(g, stable, Redistributed(stable))

\* M-LEAVE-03, X-LEAVE-03..05: m goes, whatever it speaks.
Gone(g, m) ==
  IF Downgrades(g, {m}, 0) THEN DowngradedWithout(g, {m})
  ELSE World([g EXCEPT !.consumer = Consumer!Fenced(@, m, Size),
                       !.subscriptions = Without(@, {m}),
                       !.joinTimers = @ \ {m}, !.syncTimers = @ \ {m}])
=============================================================================
