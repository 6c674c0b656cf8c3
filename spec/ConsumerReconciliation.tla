----------------------- MODULE ConsumerReconciliation -----------------------
(***************************************************************************)
(* One member on its way from what it holds to its target: section 7.6 of  *)
(* the rules, as functions of the group, the member and its heartbeat.     *)
(* There are no variables.                                                 *)
(***************************************************************************)
EXTENDS ConsumerTypes

Holding(m) == DOMAIN m.assigned \cup DOMAIN m.revoking

\* A partition is free if no member holds it; a member that is away still holds
\* its own (M-PE-01).
IsFree(g, p) == \A n \in DOMAIN g.members : p \notin Holding(g.members[n])

\* Which of the wanted partitions the member can have now: free ones, and those
\* in its own R (M-REC-11, M-REC-21).
Obtainable(g, m, wanted) ==
  {p \in wanted : IsFree(g, p) \/ p \in DOMAIN m.revoking}

\* Whether the member must first confirm that it gave up what it loses
\* (M-REC-10, M-REC-23).
MustRevoke(r, lost) == lost # {} /\ (~r.includesOwned \/ r.owned \cap lost # {})

\* A partition to be revoked is no longer assigned (M-REC-10, INV-KIP-02).
Kept(held, T) == held \cap T

\* Outside of UNREVOKED there is nothing left to revoke (M-REC-11..14).
StillRevoking(m) == << >>

\* The assignment epoch of a newly granted partition (M-PE-06).
GrantEpoch(g, t) == t

(***************************************************************************)
(* From epoch x towards the target T at epoch t (M-REC-10..15).            *)
(***************************************************************************)
Advanced(g, m, T, t, r, x) ==
  LET held   == DOMAIN m.assigned
      keep   == Kept(held, T)
      lost   == held \ T
      wanted == T \ held
      free   == Obtainable(g, m, wanted)
      Now(S) == [p \in S |-> IF p \in held THEN m.assigned[p] ELSE GrantEpoch(g, t)]
  IN IF MustRevoke(r, lost)
     THEN [m EXCEPT !.state = "UNREVOKED", !.epoch = x, !.previousEpoch = m.epoch,
                    !.assigned = Now(keep),
                    !.revoking = Now(lost)]
     ELSE [m EXCEPT !.state = IF wanted = free THEN "STABLE" ELSE "UNRELEASED",
                    !.epoch = t, !.previousEpoch = m.epoch,
                    !.assigned = Now(keep \cup free),
                    !.revoking = StillRevoking(m)]

\* A heartbeat confirms a revocation if it lists owned partitions and none of R
\* is among them (M-REC-03, M-REC-04, M-REC-18).
Confirms(r, m) == r.includesOwned /\ r.owned \cap DOMAIN m.revoking = {}

\* The epoch of a member that has just confirmed (M-REC-19).
AfterRevocation(e) == e

\* A member that is at t and STABLE stays as it is, and so does one that has not
\* confirmed; any other advances (M-REC-01..05, M-HB-08).
Reconciled(g, m, T, t, r) ==
  CASE m.state = "STABLE" /\ m.epoch = t -> m
    [] m.state = "UNREVOKED" /\ ~Confirms(r, m) -> m
    [] m.state = "UNREVOKED" -> Advanced(g, m, T, t, r, AfterRevocation(m.epoch))
    [] OTHER -> Advanced(g, m, T, t, r, m.epoch)
=============================================================================
