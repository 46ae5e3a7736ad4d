-- Prices with currencies become cents; the last five are kept, and a jump needs a reason.
local RATES = { EUR = 1, USD = 0.9 }

local function cents(text)
  local number, currency = tostring(text):match("^%s*([%d%.]+)%s*(%u%u%u)%s*$")
  local rate = currency and RATES[currency]
  if rate == nil then error("no price: " .. tostring(text), 0) end
  return math.floor(tonumber(number) * rate * 100 + 0.5)
end

if ACTION == "DELETE" then return end
if ACTION == "UPDATE" and OBJECT.price == OLD.price then return end

local now = cents(OBJECT.price)
local before = OLD and OLD.cents
if before and before > 0 then
  local change = (now - before) / before
  if math.abs(change) > 0.5 and (OBJECT.reason == nil or OBJECT.reason == OLD.reason) then
    error(string.format("a change of %d %% needs a reason", math.floor(change * 100 + 0.5)), 0)
  end
end

local history = { now }
for _, old in ipairs(OLD and OLD.history or {}) do
  if #history < 5 then history[#history + 1] = old end
end
OBJECT.cents = now
OBJECT.history = history
