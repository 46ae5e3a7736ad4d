import type { Area } from "../../area.ts";
import type { SentPolicies } from "./sent-policies.ts";
import type { IngestService } from "./service.ts";

export interface IngestParts {
  readonly ingest: Pick<IngestService, "leave" | "close">;
  readonly sent: Pick<SentPolicies, "leave">;
}

/** Entries come over the agent port: it has no endpoints. */
export function ingestArea({ ingest, sent }: IngestParts): Area {
  return {
    name: "ingest",
    leave: (tenant) => {
      ingest.leave(tenant);
      sent.leave(tenant);
    },
    close: () => ingest.close(),
  };
}
