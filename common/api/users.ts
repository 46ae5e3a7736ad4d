import { Type } from "typebox";
import { PASSWORD_MIN_CHARACTERS, TOKEN_DAYS_DEFAULT, TOKEN_DAYS_MAX, TOKEN_SCOPES_MAX } from "../limits.ts";
import { contentIn, having, NOT_EMPTY, oneOfMembers, OWN_PATH, PLAIN_TEXT, USER_NAME } from "./documented.ts";
import { Revision } from "./revision.ts";

const Text = (maxLength: number) => Type.String({ maxLength });

const Code = Type.Optional(
  Type.String({ maxLength: 64, description: "One-time password or recovery code, for a user with a second factor" }),
);

/** Sign-in for programs: query, form or JSON. */
export const SignInInput = Type.Object({
  /** Absent: the installation's only tenant. */
  company: Type.Optional(Text(48)),
  username: Type.String({ minLength: 1, maxLength: 200, documented: PLAIN_TEXT }),
  password: Type.String({ minLength: 1, maxLength: 4_096 }),
  code: Code,
  remember: Type.Optional(Type.Boolean()),
});

/** The session id, which is also set as cookie. */
export const SignInOutput = Type.String();

/** Sign-in for people. The HTML form of existing portals sends the name as `user_name`. */
export const LoginInput = Type.Object(
  {
    company: Type.Optional(Text(48)),
    username: Type.Optional(Type.String({ maxLength: 200, documented: NOT_EMPTY })),
    user_name: Type.Optional(Type.String({ maxLength: 200, documented: NOT_EMPTY })),
    password: Type.Optional(Type.String({ maxLength: 4_096, documented: NOT_EMPTY })),
    code: Code,
    ticket: Type.Optional(
      Type.String({
        maxLength: 8_000,
        description: "Of the page that asks for the code: stands for name and password",
        documented: NOT_EMPTY,
      }),
    ),
    remember: Type.Optional(Type.Boolean()),
  },
  { documented: oneOfMembers(["ticket"], ["username", "password"], ["user_name", "password"]) },
);

export const LoginPageInput = Type.Object({ error: Type.Optional(Text(50)) });

export const LogoutInput = Type.Object({ name: Type.Optional(Text(200)) });

export const NamedLogoutInput = Type.Object({ name: Text(4_096) });

/** As the sign-in for programs, but redirects a browser to `redirect`, a path of this site, or to the start page. */
export const GoAuthInput = Type.Object({
  ...SignInInput.properties,
  redirect: Type.Optional(Type.String({ maxLength: 1_000, documented: OWN_PATH })),
});

/** The password is the raw body. */
export const PasswordCheckInput = Type.Object({});

/** Empty: the password is acceptable. Otherwise the reason why not. */
export const PasswordCheckReply = Type.String();

export const HomeInput = Type.Object(
  {
    home: Type.Optional(
      Type.String({
        description: "Path of a page of this site; empty or absent: none of one's own",
        documented: OWN_PATH,
      }),
    ),
  },
  { documented: contentIn("home") },
);

export const UserTreeInput = Type.Object({
  fullname: Type.Optional(Type.String({ description: "Path of an organisation or a user; / or absent: all" })),
});

const Contacts = Type.Array(Text(256), { maxItems: 32 });
const Flag = Type.Optional(Type.Boolean());

const DetailMembers = {
  auth: Type.Optional(Text(64)),
  grpset: Type.Optional(Type.Array(Text(1_000), { maxItems: 256 })),
  lastname: Type.Optional(Text(256)),
  firstname: Type.Optional(Text(256)),
  gender: Type.Optional(Text(64)),
  address: Type.Optional(Text(1_000)),
  email: Type.Optional(Contacts),
  imaccount: Type.Optional(Text(256)),
  wechat: Type.Optional(Type.String({ maxLength: 256, description: "Another name of imaccount" })),
  mobile: Type.Optional(Contacts),
  telephone: Type.Optional(Contacts),
  remark: Type.Optional(Text(4_000)),
  status: Type.Optional(Type.Integer({ minimum: -2_147_483_648, maximum: 2_147_483_647 })),
  isadmin: Flag,
  isactive: Flag,
  config: Type.Optional(
    Type.Record(Text(256), Text(4_000), {
      maxProperties: 64,
      description:
        "The client gives these their meaning, but for time_zone: the zone in which statements of the user count days",
    }),
  ),
};

const NEW_NODES = [{ properties: { otype: { enum: ["org"] } } }, having("passwd")];

export const UserCreateInput = Type.Object(
  {
    parent: Type.String({
      minLength: 1,
      maxLength: 8_000,
      description: "Path or id of an organisation; / is the root",
    }),
    username: Type.String({ maxLength: 200, documented: USER_NAME }),
    passwd: Type.Optional(
      Type.String({
        maxLength: 4_096,
        description: "Required for a user; ignored for an organisation",
        documented: { minLength: PASSWORD_MIN_CHARACTERS },
      }),
    ),
    otype: Type.Union([Type.Literal("usr"), Type.Literal("org")]),
    ...DetailMembers,
  },
  { documented: { anyOf: NEW_NODES } },
);

const UserId = Text(20);

export const UserUpdateInput = Type.Object({
  userid: UserId,
  passwd: Type.Optional(Type.String({ maxLength: 4_096, documented: { minLength: PASSWORD_MIN_CHARACTERS } })),
  password: Type.Optional(
    Type.String({ maxLength: 4_096, description: "The caller's present one; required with passwd for oneself" }),
  ),
  ...DetailMembers,
});

export const UserIdInput = Type.Object({ userid: UserId });

export const UserMoveInput = Type.Object({
  userid: UserId,
  to: Type.String({ description: "Id or path of the organisation to move to" }),
});

export const UserIdReply = Type.String({ description: "19 or 20 decimal digits" });

export const UserNodeReply = Type.Object({
  id: UserIdReply,
  username: Type.String({ description: "/ for the root" }),
  fullname: Type.String({ description: "Path from the root" }),
  parent: Type.String({ description: "Path of the organisation it is in; empty for the root" }),
  otype: Type.String({ description: "usr or org" }),
  isadmin: Type.Optional(Type.Boolean()),
  isactive: Type.Optional(Type.Boolean()),
  status: Type.Optional(Type.Integer()),
  firstname: Type.Optional(Type.String()),
  lastname: Type.Optional(Type.String()),
  gender: Type.Optional(Type.String()),
  address: Type.Optional(Type.String()),
  imaccount: Type.Optional(Type.String()),
  wechat: Type.Optional(Type.String()),
  remark: Type.Optional(Type.String()),
  auth: Type.Optional(Type.String()),
  email: Type.Optional(Type.Array(Type.String())),
  mobile: Type.Optional(Type.Array(Type.String())),
  telephone: Type.Optional(Type.Array(Type.String())),
  grpset: Type.Optional(Type.Array(Type.String())),
  config: Type.Optional(Type.Record(Type.String(), Type.String())),
  revision: Type.Optional(Revision),
  nodes: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
    description: "Organisations, then users, by name; nodes of this same form",
  }),
});

export const EndSessionInput = Type.Object({
  id: Type.String({ pattern: "^[0-9a-f]{64}$" }),
  password: Type.String({ minLength: 1, maxLength: 4_096 }),
});

/** Sent by the page of the user's own account. */
export const EndSessionsInput = Type.Object({
  id: Type.Optional(
    Type.String({ description: "One of one's sessions; absent or empty: all but this one", maxLength: 64 }),
  ),
  password: Type.String({ minLength: 1, maxLength: 4_096 }),
});

export const OwnIdInput = Type.Object({ id: Type.String({ pattern: "^[0-9a-f]{64}$" }) });

export const SessionsReply = Type.Array(
  Type.Object({
    id: Type.String({ description: "Names the session; it does not sign in" }),
    createdMs: Type.Integer({ description: "milliseconds since 1970" }),
    remote: Type.String({ description: "Address it was made from" }),
    current: Type.Boolean({ description: "This call came by it" }),
  }),
);

const SCOPE = { pattern: "^([a-z]+:(\\*|read|write|run)|\\*:(read|write|run))$" };

export const TokenInput = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 200 }),
  scopes: Type.Array(Type.String({ maxLength: 100, documented: SCOPE }), {
    minItems: 1,
    maxItems: TOKEN_SCOPES_MAX,
    description: "Grants such as hosts:read, hosts:* or *:read, each within those of its maker",
  }),
  days: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: TOKEN_DAYS_MAX,
      default: TOKEN_DAYS_DEFAULT,
      description: "days that it holds",
    }),
  ),
});

export const TokenReply = Type.String({ description: "The token, told once: for Bearer, or as password for Basic" });

export const TokensReply = Type.Array(
  Type.Object({
    id: Type.String({ description: "Names the token; it does not sign in" }),
    name: Type.String(),
    scopes: Type.Array(Type.String()),
    createdMs: Type.Integer({ description: "milliseconds since 1970" }),
    expiresMs: Type.Integer({ description: "milliseconds since 1970" }),
    remote: Type.String({ description: "Address it was made from" }),
  }),
);

export const OwnPasswordInput = Type.Object({ password: Type.String({ minLength: 1, maxLength: 4_096 }) });

export const ChangePasswordInput = Type.Object({
  password: Type.String({ minLength: 1, maxLength: 4_096, description: "The present one" }),
  newpassword: Type.String({ minLength: 1, maxLength: 4_096 }),
});

export const SecondFactorReply = Type.Object({
  active: Type.Boolean(),
  recoverycodes: Type.Integer({ description: "How many are left" }),
});

export const NewSecondFactorReply = Type.Object({
  uri: Type.String({ description: "otpauth://totp/…, for a QR code; told once" }),
  secret: Type.String({ description: "The same secret in base32, to be typed" }),
});

const secondfactor = Type.Union([Type.Literal("optional"), Type.Literal("administrators"), Type.Literal("everybody")], {
  description: "Whom a second factor is required of; administrators are those who may change groups",
});
const firstpasswords = Type.Union([Type.Literal("lasting"), Type.Literal("once")], {
  description: "`once`: a password set by somebody else signs in to its change only, and for seven days",
});

export const SignInPolicyReply = Type.Object({ secondfactor, firstpasswords });

const stops = Type.Object(
  {
    users: Type.Array(Type.String(), { description: "Names of users whose Basic sign-in is refused" }),
    usercount: Type.Integer({ description: "How many there are; `users` names the first of them" }),
    tokens: Type.Array(Type.Object({ user: Type.String(), name: Type.String() }), {
      description: "Tokens that are refused",
    }),
    tokencount: Type.Integer({ description: "How many there are; `tokens` names the first of them" }),
  },
  { description: "Programs that stop until their user has done what the policy requires, by this change" },
);

export const ChangedSignInPolicyReply = Type.Object({ secondfactor, firstpasswords, stops });

export const SignInPolicyChange = Type.Object({
  secondfactor: Type.Optional(secondfactor),
  firstpasswords: Type.Optional(firstpasswords),
});

export const SecondFactorCodeInput = Type.Object({ code: Type.String({ minLength: 1, maxLength: 64 }) });

export const RecoveryCodesReply = Type.Array(Type.String(), { description: "Good once each; told once" });
