----------------------- MODULE ConsumerReconciliation -----------------------
(***************************************************************************)
(* One member on its way from what it holds to its target: section 7.6 of  *)
(* the rules, as functions of the group, the member and its heartbeat. No  *)
(* variables.                                                              *)
(***************************************************************************)
EXTENDS ConsumerTypes

Holding(m) == DOMAIN m.assigned \cup DOMAIN m.revoking

\* M-PE-01: free means that no member holds it; one that is away still does.
Unheld(g, p) == \A n \in DOMAIN g.members : p \notin Holding(g.members[n])

\* M-REC-11, M-REC-21: what can be had at once of what is wanted.
Obtainable(g, m, wanted) ==
  {p \in wanted : Unheld(g, p) \/ p \in DOMAIN m.revoking}

\* M-REC-10, M-REC-23: must the member first say that it gave up what it loses?
MustRevoke(r, lost) == lost # {} /\ (~r.tellsOwned \/ r.owned \cap lost # {})

\* M-REC-10: what is to be revoked is assigned no more (INV-KIP-02).
Kept(held, T) == held \cap T

\* M-REC-11..14
StillRevoking(m) == << >>

\* M-PE-06: the assignment epoch of what is newly granted.
GrantEpoch(g, t) == t

(***************************************************************************)
(* M-REC-10..15: from epoch x towards the target T at epoch t.             *)
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

\* M-REC-03, M-REC-04, M-REC-18
Confirms(r, m) == r.tellsOwned /\ r.owned \cap DOMAIN m.revoking = {}

\* M-REC-19: the epoch of a member that has just confirmed.
AfterRevocation(e) == IF old_revocation_advances_epoch THEN e + 1 ELSE e

\* M-REC-01..05, M-HB-08
Reconciled(g, m, T, t, r) ==
  CASE m.state = "STABLE" /\ m.epoch = t -> m
    [] m.state = "UNREVOKED" /\ ~Confirms(r, m) -> m
    [] m.state = "UNREVOKED" -> Advanced(g, m, T, t, r, AfterRevocation(m.epoch))
    [] OTHER -> Advanced(g, m, T, t, r, m.epoch)
=============================================================================
