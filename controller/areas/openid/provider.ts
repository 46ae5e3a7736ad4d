import * as client from "openid-client";
import { AppError, isAppError } from "../../../common/errors.ts";
import {
  OPENID_ANSWER_MAX_BYTES,
  OPENID_CLOCK_TOLERANCE_SECONDS,
  OPENID_METADATA_AGAIN_MS,
  OPENID_METADATA_KEPT_MS,
  OPENID_REQUEST_DEADLINE_MS,
  OPENID_SUBJECT_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import type { OpenIdSettings } from "../../settings/openid.ts";
import { serviceFetch, type ServiceFetch } from "../../outbound/index.ts";
import type { Runtime } from "../../runtime.ts";

/**
 * Values that prove that a browser began this sign-in. Only that browser sends them back. It cannot read `verifier`.
 */
export interface Proofs {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export type Claims = Readonly<Record<string, unknown>>;

export interface ProviderOptions {
  readonly settings: OpenIdSettings;
  readonly runtime: Runtime;
  /** Networks in which the provider may be, in addition to public addresses and the host of its issuer. */
  readonly networks: readonly string[];
  /** True if the provider may have a public address; true when absent. */
  readonly isPublicOpen?: boolean | undefined;
}

/**
 * The provider. Its configuration is read on first use, and again after `OPENID_METADATA_KEPT_MS`. Its signing keys are
 * read again when a token names an unknown key, so the provider may change its keys.
 */
export class Provider {
  readonly #settings: OpenIdSettings;
  readonly #runtime: Runtime;
  readonly #fetch: ServiceFetch;
  #known: client.Configuration | undefined;
  #reading: Promise<client.Configuration> | undefined;
  #failure: unknown;
  #readAgainMs = Number.NEGATIVE_INFINITY;

  constructor({ settings, runtime, networks, isPublicOpen }: ProviderOptions) {
    this.#settings = settings;
    this.#runtime = runtime;
    this.#fetch = serviceFetch({
      home: settings.issuer,
      networks,
      isPublicOpen,
      clock: runtime.clock,
      deadlineMs: OPENID_REQUEST_DEADLINE_MS,
      max: { bytes: OPENID_ANSWER_MAX_BYTES, limit: "OPENID_ANSWER_MAX_BYTES" },
    });
  }

  /** The address at which the browser signs in. `AppError("unavailable")` if the provider does not answer. */
  async address({ state, nonce, verifier }: Proofs): Promise<string> {
    const url = client.buildAuthorizationUrl(await this.#configuration(), {
      redirect_uri: this.#callback().href,
      scope: this.#settings.scopes.join(" "),
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      state,
      nonce,
    });
    return url.href;
  }

  /**
   * Claims of the signed-in user, from an ID token whose signature, issuer, audience, nonce and time are valid. If the
   * token lacks some of `wanted`, the provider is asked for the claims of that user. `AppError("denied")` if anything
   * is invalid, `unavailable` if the provider does not answer.
   */
  async claims(
    answer: Readonly<Record<string, string>>,
    { state, nonce, verifier }: Proofs,
    wanted: readonly string[],
  ): Promise<Claims> {
    const configuration = await this.#configuration();
    const url = this.#callback();
    url.search = new URLSearchParams(answer).toString();
    const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
    try {
      const tokens = await client.authorizationCodeGrant(configuration, url, checks);
      const claims = tokens.claims();
      if (claims === undefined) throw new AppError("denied", "The provider sent no ID token.");
      checkSubject(claims.sub);
      const hasAll = wanted.every((name) => claims[name] !== undefined);
      if (hasAll || configuration.serverMetadata().userinfo_endpoint === undefined) return claims;
      return { ...(await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)), ...claims };
    } catch (error) {
      throw this.#translated(error);
    }
  }

  #callback(): URL {
    return new URL("/user/openid/callback", this.#settings.publicUrl);
  }

  /** Concurrent calls share one read. If the provider does not answer, the last configuration stays in use. */
  async #configuration(): Promise<client.Configuration> {
    const { clock, log } = this.#runtime;
    if (clock.monotonicMs() < this.#readAgainMs) {
      if (this.#known) return this.#known;
      throw this.#failure;
    }
    this.#reading ??= this.#discover().finally(() => (this.#reading = undefined));
    try {
      this.#known = await this.#reading;
      this.#readAgainMs = clock.monotonicMs() + OPENID_METADATA_KEPT_MS;
      return this.#known;
    } catch (error) {
      this.#readAgainMs = clock.monotonicMs() + OPENID_METADATA_AGAIN_MS;
      this.#failure = away(error);
      log.warn({ err: error }, "the OpenID provider does not say what it offers");
      if (this.#known) return this.#known;
      throw this.#failure;
    }
  }

  async #discover(): Promise<client.Configuration> {
    const { issuer, clientId, clientSecret } = this.#settings;
    const execute = [client.enableNonRepudiationChecks];
    if (issuer.protocol === "http:") execute.push(client.allowInsecureRequests);
    const metadata = { [client.clockTolerance]: OPENID_CLOCK_TOLERANCE_SECONDS };
    const authentication = (...call: Parameters<client.ClientAuth>): void => {
      const [server] = call;
      const { token_endpoint_auth_methods_supported: methods = ["client_secret_basic"] } = server;
      if (clientSecret === undefined) client.None()(...call);
      else if (methods.includes("client_secret_basic")) client.ClientSecretBasic(clientSecret)(...call);
      else client.ClientSecretPost(clientSecret)(...call);
    };
    return client.discovery(issuer, clientId, metadata, authentication, {
      execute,
      timeout: OPENID_REQUEST_DEADLINE_MS / 1_000,
      [client.customFetch]: this.#fetch,
    });
  }

  #translated(error: unknown): AppError {
    if (isAppError(error, "denied")) return error;
    this.#runtime.log.warn({ err: error }, "a sign-in by OpenID Connect did not hold");
    if (isOutage(error)) return away(error);
    return new AppError("denied", "What the provider answered does not hold.", { cause: error });
  }
}

/** True if the request failed without an answer, or if the answer has a status of 500 or more. */
function isOutage(error: unknown): boolean {
  if (isAppError(error)) return true;
  if (!(error instanceof Error)) return false;
  if ("status" in error && typeof error.status === "number") return error.status >= 500;
  if (error.cause instanceof Response) return error.cause.status >= 500;
  const code = "code" in error ? String(error.code) : "";
  return /^E[A-Z]+$/.test(code) || (error.cause !== undefined && isOutage(error.cause));
}

/** The cause is for the log only. It may contain addresses that callers who are not signed in must not see. */
function away(cause: unknown): AppError {
  return new AppError("unavailable", "The OpenID provider does not answer.", { cause });
}

function checkSubject(subject: string): void {
  if (subject === "" || subject.length > OPENID_SUBJECT_MAX_CHARACTERS)
    throw new AppError("denied", "The subject that the provider sent is no subject.");
}
