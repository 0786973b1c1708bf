/** A field that takes effect on Enter or when it is left: half a word is not worth a question. */

import { useEffect, useState } from "react";

export function Typed({
  label,
  value,
  take,
  list,
  size,
}: {
  label: string;
  value: string;
  take: (written: string) => void;
  list?: string;
  size?: number;
}) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const done = () => {
    if (text.trim() !== value) take(text.trim());
  };
  return (
    <input
      className="field"
      aria-label={label}
      placeholder={label}
      value={text}
      list={list}
      size={size}
      onChange={(event) => setText(event.target.value)}
      onBlur={done}
      onKeyDown={(event) => event.key === "Enter" && done()}
    />
  );
}
