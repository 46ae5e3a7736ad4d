/** How to connect to etcd or Cassandra, in addition to the addresses. */
export interface StoreAccess {
  /** Absent: connections are plain text. */
  readonly tls?: {
    /** PEM. Servers show certificates of this authority for the name or address by which they are dialled. */
    readonly ca: Buffer;
    /** Certificate and key for servers that ask for them. */
    readonly client?: { readonly cert: Buffer; readonly key: Buffer };
  };
  readonly account?: { readonly user: string; readonly password: string };
}
