package server

import "github.com/postroom/postroom/api"

func (s *Server) digestRoutes() group {
	all := s.parts.Digests
	digests := digestRoutes{digests: all}
	reader := changes("digestRecipient", "recipient")
	return group{"Digests", "Collect notifications and send each recipient a summary on schedule.",
		[]route{
			grows(large(eventsBody, on(api.TakeDigestEvents, takesEvents(), unlogged("there are millions; the runs have their ids"),
				digests.takeDigestEvents))),
			on(api.DeleteDigestEvents, own(api.ScopeDigests), changes("digestRecipient", ""),
				digests.deleteDigestEvents),
			grows(on(api.CreateDigestKind, own(api.ScopeDigests), changes("digestKind", ""),
				byBody[createDigestKindInput](all.Kinds.Create))),
			get(api.ListDigestKinds, own(api.ScopeDigests), byQuery(all.Kinds.Page)),
			get(api.GetDigestKind, own(api.ScopeDigests), byKey[digestKindInput](all.Kinds.Get)),
			grows(on(api.UpdateDigestKind, own(api.ScopeDigests), changes("digestKind", "category"),
				byIDAndBody[updateDigestKindInput](all.Kinds.Update))),
			on(api.DeleteDigestKind, own(api.ScopeDigests), changes("digestKind", "category"),
				digests.deleteDigestKind),
			get(api.ListDigestRecipients, own(api.ScopeDigests), byQuery(all.List)),
			get(api.GetDigestRecipient, own(api.ScopeDigests), byKey[digestRecipientInput](all.Get)),
			grows(on(api.PutDigestRecipient, own(api.ScopeDigests), reader, digests.putDigestRecipient)),
			on(api.PatchDigestRecipient, own(api.ScopeDigests), reader,
				byIDAndBody[writeDigestRecipientInput](all.Patch)),
			on(api.DeleteDigestRecipient, own(api.ScopeDigests), reader, digests.deleteDigestRecipient),
			get(api.ListWaitingDigestEvents, own(api.ScopeDigests), byKey[digestRecipientInput](all.Waiting)),
			get(api.PreviewDigest, own(api.ScopeDigests), byKey[digestRecipientInput](all.Preview)),
			on(api.SendDigest, own(api.ScopeDigests), reader, byKey[digestRecipientInput](all.Send)),
			on(api.ComputeDigestTimes, own(api.ScopeDigests), unlogged("changes nothing"), digests.computeDigestTimes),
			get(api.ListDigestRuns, own(api.ScopeDigests), byQuery(all.Runs.List)),
			get(api.GetDigestRun, own(api.ScopeDigests), byID[digestRunInput](all.Runs.Get)),
			on(api.RetryDigestRun, own(api.ScopeDigests), changes("digestRun", "run"),
				byID[digestRunInput](all.Runs.Retry)),
		}}
}
