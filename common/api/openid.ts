import { Type } from "typebox";

const Text = (maxLength: number) => Type.String({ maxLength });

export const OpenIdBeginInput = Type.Object({
  redirect: Type.Optional(Type.String({ maxLength: 1_000, description: "Path of a page of this site to go to" })),
  remember: Type.Optional(Type.Boolean({ description: "A session that outlives the browser" })),
});

/** Parameters that a provider sends back (RFC 6749, RFC 9207); others are ignored. */
export const OpenIdCallbackInput = Type.Object({
  code: Type.Optional(Text(8_000)),
  state: Type.Optional(Text(200)),
  iss: Type.Optional(Text(2_000)),
  error: Type.Optional(Text(200)),
  session_state: Type.Optional(Type.String({ description: "Of some providers; without effect" })),
  error_description: Type.Optional(Type.String({ description: "Without effect" })),
});

export const OpenIdLinkInput = Type.Object({ password: Type.String({ minLength: 1, maxLength: 4_096 }) });

export const OpenIdLinkReply = Type.String({ description: "Address at the provider where the browser goes on" });

export const OpenIdAccountReply = Type.Object({
  issuer: Type.String({ description: "Empty: no account is linked" }),
  subject: Type.String({ description: "Names the account at the provider" }),
});

export const OpenIdAccountInput = Type.Object({
  userid: Text(20),
  subject: Type.String({ minLength: 1, maxLength: 255, description: "The claim sub of the account at the provider" }),
});
