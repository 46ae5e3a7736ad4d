import { isBrowser } from "./platform.ts";
import { refusal } from "./request.ts";

/** Sign-in of a client: at most one of these. With none of them, or a session, `signIn` can be called. */
export interface CredentialsOptions {
  /** An API token of `POST /user/tokens`. */
  readonly token?: string;
  /** `<company>.<user>`, with `password`. */
  readonly user?: string;
  readonly password?: string;
  /** Value of the header `Authorization`. */
  readonly authorization?: string;
  /** Id of a session, as a sign-in answers it. Browsers send their own cookie instead. */
  readonly session?: string;
}

/** Headers that sign in the caller. */
export class Credentials {
  readonly #authorization: string | undefined;
  #session: string | undefined;

  constructor({ token, user, password, authorization, session }: CredentialsOptions) {
    const given = [token, user, authorization, session].filter((value) => value !== undefined);
    if (given.length > 1) throw refusal("Give one of token, user, authorization and session.");
    if ((user === undefined) !== (password === undefined)) throw refusal("user and password belong together.");
    if (user?.includes(":") === true) throw refusal("A user name has no colon.");
    this.#session = session;
    this.#authorization =
      authorization ?? (token !== undefined ? `Bearer ${token}` : user && `Basic ${base64(`${user}:${password}`)}`);
  }

  get canSignIn(): boolean {
    return this.#authorization === undefined;
  }

  /** The cookie of a browser is its own, so it stays when the client has no session. */
  headers(): Record<string, string> {
    if (this.#authorization !== undefined) return { authorization: this.#authorization };
    // By this header a browser proves that no page of another site made the call.
    const proof = { "x-requested-with": "odp-client" };
    if (this.#session === undefined || isBrowser()) return proof;
    return { ...proof, cookie: `matrixSession=${this.#session}` };
  }

  /** Uses this session from now on; `undefined`: none. */
  use(session: string | undefined): void {
    this.#session = session;
  }
}

/** Base64 of a text as UTF-8, as controllers read the names of Basic. */
function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
