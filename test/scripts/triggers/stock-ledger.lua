-- Stock never goes below nothing, and each change of it is a line of the ledger with what it was and became.
local before = OLD and OLD.amount or 0
local after = ACTION == "DELETE" and 0 or (OBJECT.amount or 0)

if ACTION ~= "DELETE" then
  if after < 0 then error("only " .. before .. " of " .. OBJECT.part, 0) end
  OBJECT.amount = after
  OBJECT.changes = (OLD and OLD.changes or 0) + 1
  if after == 0 then
    OBJECT.state = "out"
  elseif after < (OBJECT.least or 0) then
    OBJECT.state = "low"
  else
    OBJECT.state = "fine"
  end
end

if before ~= after then
  local part = ACTION == "DELETE" and OLD.part or OBJECT.part
  local number = (OLD and OLD.changes or 0) + 1
  odb.mql("insert into /matrix/stock/ledger line = ?, delta = ?", part .. "-" .. number, after - before)
end
