--------------------------- MODULE MixedOwnership ---------------------------
(***************************************************************************)
(* The mixed group refines Ownership, over its conversions. As for a       *)
(* consumer group, a history variable counts the decisions: how often what *)
(* the log grants has changed.                                             *)
(*                                                                         *)
(* The lease of a holder is what it is granted; a client in step with the  *)
(* log that believes to own more than that is a lease that nobody gave.    *)
(* Who is not in step with the log is fenced, and has none (NOT-01).       *)
(***************************************************************************)
EXTENDS MCMixedMutants

VARIABLE decision  \* how often what is granted has changed
TypeDecision == decision \in Nat

\* Static members are one holder over their restarts, others one per id.
Identity(id, inst) == IF inst # "" THEN inst ELSE id

ClassicGrant(record, k) ==
  UNION {l.assignment : l \in {n \in record.members :
                                 Identity(n.memberId, n.instanceId) = k}}

ConsumerGrant(h, k) ==
  UNION {Consumer!Holding(h.members[m]) : m \in {n \in DOMAIN h.members :
                                                   Identity(n, h.members[n].instanceId) = k}}

GrantedBy(l) ==
  [k \in Ids \cup Instances |->
     IF l.protocol = "classic" THEN ClassicGrant(l.classic, k) ELSE ConsumerGrant(l.consumer, k)]

\* What a classic client owns came with the generation that the log has for it.
LoggedWith(c) ==
  LET me == classic[c]
  IN IF log.protocol = "classic"
     THEN me.ownedGeneration = log.classic.generationId
          /\ \E l \in log.classic.members : l.memberId = me.memberId
     ELSE me.memberId \in DOMAIN log.subscriptions
          /\ me.ownedGeneration = log.consumer.members[me.memberId].epoch

Believers ==
  {c \in Clients : /\ Owned(c) # {}
                   /\ \/ RunsClassic(c) /\ LoggedWith(c)
                      \/ RunsConsumer(c) /\ consumer[c].memberId \in DOMAIN log.consumer.members}

Lease(c) ==
  LET holder == Identity(IdOf(c), InstanceOf[c])
      granted == GrantedBy(log)[holder]
  IN [holder |-> holder, epoch |-> decision,
      things |-> IF Owned(c) \subseteq granted THEN granted ELSE Owned(c)]

CountedInit == Init /\ decision = 0

CountedNext ==
  /\ Next
  /\ decision' = IF GrantedBy(log') = GrantedBy(log) THEN decision ELSE decision + 1

CountedSpec == CountedInit /\ [][CountedNext]_<<vars, decision>>

Abstract == INSTANCE Ownership WITH
  Holders <- Ids \cup Instances, Things <- Parts,
  epoch <- decision, grant <- GrantedBy(log), leases <- {Lease(c) : c \in Believers}

TheGroupKeepsOwnership == Abstract!Spec
=============================================================================
