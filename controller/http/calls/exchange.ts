import type { Peer } from "../connections/peer.ts";

/** Data of one request and its answer, for the log, the metrics and the error form. */
export interface Exchange {
  readonly peer: Peer;
  readonly traceparent: string;
  readonly startedMs: number;
  /** As the client sent it: only a hint. */
  readonly contentType: string;
  tenant: string;
  user: string;
  /** `ok` or the code of the failure. */
  code: string;
  /** Pattern of the path. Absent: only the server knows it. */
  route: string | undefined;
}

declare module "fastify" {
  interface FastifyRequest {
    exchange: Exchange;
  }
}
