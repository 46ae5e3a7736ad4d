import type { Encoding } from "../../../common/text/encodings.ts";
import type { DepotToDeploy } from "../hosts/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { DepotUsers } from "./users.ts";

export type { DeploymentOutcome, DepotDifference, DepotRecord, DepotSummary } from "../../../common/api/depots.ts";

/** An uploaded file and its temporary path during the call. */
export interface DepotUpload {
  /** As the client sent it: not a path to trust. */
  readonly filename: string;
  readonly path: string;
  readonly size: number;
  /** Encoding of names in an archive that does not state its own; UTF-8 when absent. */
  readonly names?: Encoding | undefined;
}

/** The description of a version besides its files. In an update, an absent member keeps its stored value. */
export interface DepotDescription {
  readonly name: string;
  readonly version: string;
  readonly remark?: string;
  readonly tags?: readonly string[];
  /** Runs in the depot's folder after the files are in place. */
  readonly command?: string;
}

/** A change of one file: `M` modify, `A` add, `D` delete. */
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

export interface Depots {
  /**
   * The parts of a version that deployments and policies need; by default of the newest version.
   * `AppError("not_found")` when the principal sees no such version.
   */
  toDeploy(principal: Principal, name: string, version?: string): Promise<DepotToDeploy>;
  /** True if the controllers store a version of the depot. `AppError("not_found")` if the principal may not see it. */
  isStored(principal: Principal, name: string): Promise<boolean>;
  /** Areas that use depots. A version that they use is removed from the store or from hosts only by force. */
  readonly users: DepotUsers;
}
