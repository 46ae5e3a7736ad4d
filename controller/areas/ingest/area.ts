import type { Area } from "../../area.ts";
import type { Unrestricted } from "../objects/index.ts";
import type { RecordWriter } from "./records.ts";
import { retryClass, type RuleRetries } from "./retries.ts";
import type { SentPolicies } from "./sent-policies.ts";
import type { IngestService } from "./service.ts";

export interface IngestParts {
  readonly ingest: Pick<IngestService, "leave" | "close">;
  readonly records: Pick<RecordWriter, "marked">;
  readonly retries: Pick<RuleRetries, "leave">;
  /** Retries the records of a tenant whose next try is due. */
  readonly tryAgain: (tenant: string) => Promise<void>;
  readonly objects: Unrestricted<"remove">;
  /** True on the one controller that retries records. */
  readonly isFirst: () => boolean;
  readonly sent: Pick<SentPolicies, "leave">;
}

/** Entries arrive over the agent port, so the area has no endpoints. */
export function ingestArea({ ingest, records, sent, objects, retries, isFirst, tryAgain }: IngestParts): Area {
  return {
    name: "ingest",
    classes: [retryClass(objects)],
    levels: [
      {
        name: "odp_records_cut",
        help: "Raw records of agents since the start that lost their end.",
        value: () => records.marked.cut,
      },
      {
        name: "odp_records_malformed",
        help: "Raw records of agents since the start with bytes that are no character of their encoding.",
        value: () => records.marked.malformed,
      },
    ],
    maintain: async (tenant) => {
      if (isFirst()) await tryAgain(tenant);
    },
    leave: (tenant) => {
      ingest.leave(tenant);
      retries.leave(tenant);
      sent.leave(tenant);
    },
    close: () => ingest.close(),
  };
}
