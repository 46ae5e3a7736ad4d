/** By which etcd or Cassandra is reached besides its addresses. */
export interface StoreAccess {
  /** Absent: as plain text. */
  readonly tls?: {
    /** PEM. Servers show certificates of it for the name or address they are dialled by. */
    readonly ca: Buffer;
    /** Shown to servers that ask for it; with its key. */
    readonly client?: { readonly cert: Buffer; readonly key: Buffer };
  };
  readonly account?: { readonly user: string; readonly password: string };
}
