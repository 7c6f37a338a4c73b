package server

import "github.com/postroom/postroom/api"

// digestRoutes are about digests.
func (s *Server) digestRoutes() group {
	digests := digestRoutes{digests: s.parts.Digests}
	reader := changes("digestRecipient", "recipient")
	return group{"Digests", "Notifications, collected for each reader and mailed when the reader wants it.",
		[]route{
			grows(large(eventsBody, on(api.TakeDigestEvents, takesEvents(), unlogged("there are millions; the runs have their ids"),
				digests.takeDigestEvents))),
			on(api.DeleteDigestEvents, own(api.ScopeDigests), changes("digestRecipient", ""),
				digests.deleteDigestEvents),
			grows(on(api.CreateDigestKind, own(api.ScopeDigests), changes("digestKind", ""),
				digests.createDigestKind)),
			get(api.ListDigestKinds, own(api.ScopeDigests), digests.listDigestKinds),
			get(api.GetDigestKind, own(api.ScopeDigests), digests.getDigestKind),
			grows(on(api.UpdateDigestKind, own(api.ScopeDigests), changes("digestKind", "category"),
				digests.updateDigestKind)),
			on(api.DeleteDigestKind, own(api.ScopeDigests), changes("digestKind", "category"),
				digests.deleteDigestKind),
			get(api.ListDigestRecipients, own(api.ScopeDigests), digests.listDigestRecipients),
			get(api.GetDigestRecipient, own(api.ScopeDigests), digests.getDigestRecipient),
			grows(on(api.PutDigestRecipient, own(api.ScopeDigests), reader, digests.putDigestRecipient)),
			on(api.PatchDigestRecipient, own(api.ScopeDigests), reader, digests.patchDigestRecipient),
			on(api.DeleteDigestRecipient, own(api.ScopeDigests), reader, digests.deleteDigestRecipient),
			get(api.ListWaitingDigestEvents, own(api.ScopeDigests), digests.listWaitingDigestEvents),
			get(api.PreviewDigest, own(api.ScopeDigests), digests.previewDigest),
			on(api.SendDigest, own(api.ScopeDigests), reader, digests.sendDigest),
			on(api.ComputeDigestTimes, own(api.ScopeDigests), unlogged("changes nothing"), digests.computeDigestTimes),
			get(api.ListDigestRuns, own(api.ScopeDigests), digests.listDigestRuns),
			get(api.GetDigestRun, own(api.ScopeDigests), digests.getDigestRun),
			on(api.RetryDigestRun, own(api.ScopeDigests), changes("digestRun", "run"), digests.retryDigestRun),
		}}
}
