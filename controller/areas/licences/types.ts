import type { Principal } from "../permissions/index.ts";

/** Limits of one tenant. -1 is no limit, in `expire` no end. */
export interface Licence {
  /** Milliseconds since 1970. */
  readonly expire: number;
  /** Maximum number of hosts. */
  readonly server: number;
  /** Maximum number of hosts with an agent. */
  readonly agent: number;
}

/** The signed content of a licence. */
export interface LicenceDocument extends Licence {
  readonly tenant: string;
  /** Rises with every document of a tenant: an older document never replaces a newer one. */
  readonly serial: number;
}

export interface LicenceView extends Licence {
  readonly name: string;
  readonly serial?: number;
}

export interface LicenceInfo {
  readonly licence: LicenceView;
  /** Parts of the licence that are about to end or have ended. */
  readonly warnings: readonly string[];
}

export interface Licences {
  /** Replaces the licence of the tenant that the document names. Importing the same document again changes nothing. */
  importDocument(principal: Principal, text: string): Promise<LicenceInfo>;
  info(principal: Principal, tenant: string): Promise<LicenceInfo>;
}
