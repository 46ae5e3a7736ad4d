export interface OutboundRequest {
  readonly method: string;
  /** http or https. */
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

export interface OutboundAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, decoded by its charset; UTF-8 if the answer names none, or one that is not supported. */
  readonly data: string;
}

export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** The addresses of a name. */
export type Resolve = (host: string) => Promise<ResolvedAddress[]>;
