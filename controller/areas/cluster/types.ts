/** A controller that is there, as it lies under `controllers/<id>`. */
export interface Member {
  /** The id of this run of the controller, new with every start. */
  readonly id: string;
  /** `host:port` of its agent port, as agents and other controllers reach it; empty before it is open. */
  readonly addresses: readonly string[];
  /** Base of its HTTP interface. */
  readonly url: string;
  readonly version: string;
  readonly sinceMs: number;
  /** The keys it opens secrets with, and the one it seals with. Absent of earlier versions. */
  readonly keys?: MemberKeys;
}

/** By their ids. */
export interface MemberKeys {
  readonly opening: readonly string[];
  readonly sealing: string;
}
