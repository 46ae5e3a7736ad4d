import type { Readable } from "node:stream";
import type { Static, TSchema } from "typebox";
import type { Permission, Principal } from "../areas/permissions/index.ts";

/**
 * One row of the HTTP interface. An area's `routes.ts` answers a list of them; `http/` does everything that is the same for all: reading
 * whatever form the input comes in, signing in, permission, admission, validation, audit, envelope, OpenAPI.
 */
export interface Endpoint<I extends TSchema = TSchema, O extends TSchema = TSchema> {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `:name` is one path segment; a last `*` takes the rest, slashes included, as the input member `*`. */
  readonly path: string;
  /** `public` needs no sign-in at all. A permission that ends in `:read` leaves no audit record when it is granted. */
  readonly permission: Permission | "public";
  readonly summary: string;
  /**
   * One object: path parameters, query and body members together (body over query over path). Forms arrive as text and are
   * converted by this schema: `"5"` to 5, `"true"` to true, one value to a list, `name[]` to `name`, `"null"` and
   * `"undefined"` to absent. Members it does not name are dropped.
   */
  readonly input: I;
  /** Of the envelope's `message`; also an output filter: members it does not name are not sent. */
  readonly output: O;
  /** How the body is documented; whatever form it really comes in is accepted. */
  readonly body?: "form" | "json" | "multipart" | "text";
  /** Of a body that is no upload; `HTTP_BODY_MAX_BYTES` when absent. */
  readonly bodyMaxBytes?: number;
  readonly handler: (call: Call<Static<I>>) => Promise<Answer<Static<O>>>;
}

export interface Call<I> {
  /** For `public` endpoints whoever is signed in, else a user with an empty name whom nobody granted anything. */
  readonly principal: Principal;
  readonly input: I;
  /** Uploaded parts in the order they came; removed after the call. */
  readonly files: readonly UploadedFile[];
  /** The body as it came when it was neither a form nor JSON, else undefined. An endpoint of body `text` always gets it. */
  readonly text: string | undefined;
  readonly client: Client;
  /** Fires when the client goes away or `HTTP_CALL_DEADLINE_MS` passes. */
  readonly signal: AbortSignal;
}

/** Who is on the other end of the wire. */
export interface Client {
  readonly remote: string;
  /** The session that signed this call in. */
  readonly session: string | undefined;
  /** Asks for HTML: better sent to a page than given an envelope. */
  readonly browser: boolean;
}

export interface UploadedFile {
  readonly field: string;
  /** As the client sent it: not a path to trust. */
  readonly filename: string;
  /** Where the bytes lie for the time of the call. */
  readonly path: string;
  readonly size: number;
}

/** What a handler answers. `rows` streams as the array `message`; `content` is sent bare, without an envelope. */
export type Answer<O> =
  | { readonly message: O; readonly meta?: unknown; readonly session?: SessionChange }
  | { readonly rows: AsyncIterable<readonly unknown[]>; readonly meta?: unknown }
  | { readonly redirect: string; readonly session?: SessionChange }
  | { readonly content: Readable | Uint8Array | string; readonly contentType: string; readonly filename?: string };

/** Sets the session cookie, or clears it when `id` is absent. `lastingMs` makes it outlive the browser. */
export interface SessionChange {
  readonly id?: string;
  readonly lastingMs?: number;
}

/** Lets TypeScript infer input and output of one endpoint inside a list of many. */
export function endpoint<I extends TSchema, O extends TSchema>(definition: Endpoint<I, O>): Endpoint {
  return definition as unknown as Endpoint;
}
