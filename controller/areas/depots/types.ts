import type { Encoding } from "../../../common/text/encodings.ts";
import type { DepotToDeploy } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";

export type { DeploymentOutcome, DepotDifference, DepotRecord, DepotSummary } from "../../../common/api/depots.ts";

/** An uploaded file where it lies for the time of the call. */
export interface DepotUpload {
  /** As the client sent it: not a path to trust. */
  readonly filename: string;
  readonly path: string;
  readonly size: number;
  /** Encoding of names in an archive that does not say their own; UTF-8 when absent. */
  readonly names?: Encoding | undefined;
}

/** What is said about a version besides its files. An absent member of an update keeps what was there. */
export interface DepotDescription {
  readonly name: string;
  readonly version: string;
  readonly remark?: string;
  readonly tags?: readonly string[];
  /** Run in the depot's folder once it is in place. */
  readonly command?: string;
}

/** One file version edit: modify, add, delete. */
export interface DepotFileChange {
  readonly name: string;
  readonly version: string;
  readonly newVersion: string;
  readonly filepath: string;
  readonly type: "M" | "A" | "D";
  /** A text, or the bytes of an uploaded file. */
  readonly content?: string | Uint8Array;
  readonly remark?: string;
  readonly tags?: readonly string[];
}

export interface DepotChange {
  readonly tenant: string;
  readonly name: string;
  readonly version: string;
}

export interface Depots {
  /**
   * What a deployment of that version consists of, for deployments and policies; the newest version when none is named.
   * `AppError("not_found")` when there is none for the principal.
   */
  toDeploy(principal: Principal, name: string, version?: string): Promise<DepotToDeploy>;
  /** Called before a version is removed; a check that throws keeps it. */
  beforeRemove(check: (change: DepotChange) => Promise<void>): void;
  /** Called after the content or command of an existing version was replaced. Must not throw. */
  onReplaced(listener: (change: DepotChange) => Promise<void>): void;
}
