import type { Principal } from "../permissions/index.ts";

/** What a licence allows one tenant. -1 is no limit, in `expire` no end. */
export interface Licence {
  /** Milliseconds since 1970. */
  readonly expire: number;
  /** Hosts on record. */
  readonly server: number;
  /** Hosts with an agent. */
  readonly agent: number;
}

/** What is signed. */
export interface LicenceDocument extends Licence {
  readonly tenant: string;
  /** Rises with every document for a tenant: an older one never takes the place of a newer one. */
  readonly serial: number;
}

export interface LicenceView extends Licence {
  readonly name: string;
  readonly serial?: number;
}

export interface LicenceInfo {
  readonly licence: LicenceView;
  /** What is about to end, or has. */
  readonly warnings: readonly string[];
}

export interface Licences {
  /** Takes the place of the licence of the tenant the document names. The same one again changes nothing. */
  importDocument(principal: Principal, text: string): Promise<LicenceInfo>;
  info(principal: Principal, tenant: string): Promise<LicenceInfo>;
}
