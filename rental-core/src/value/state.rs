//! The states, provinces and territories that issue license plates, under one code each. Agencies spell them in many ways.

use super::compared::nfc;

/// What a spelling is called by its country's prefix: `US-NJ`, `CA-ON`, `MX-SON`.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Country {
    UnitedStates,
    Canada,
    Mexico,
}

use Country::{Canada, Mexico, UnitedStates};

/// Country, code, and other spellings in capital letters without spaces and accents. Codes are those of ISO 3166-2; Mexican
/// ones keep their prefix, because `COL` or `QUE` alone also stand for Colorado and Quebec.
///
/// The other spellings are the full name and the codes in files of toll agencies and cities, such as `ONT` and `QB`.
const STATES: &[(Country, &str, &[&str])] = &[
    (UnitedStates, "AL", &["ALABAMA", "ALA"]),
    (UnitedStates, "AK", &["ALASKA"]),
    (UnitedStates, "AZ", &["ARIZONA", "ARIZ"]),
    (UnitedStates, "AR", &["ARKANSAS", "ARK"]),
    (UnitedStates, "CA", &["CALIFORNIA", "CALIF", "CAL"]),
    (UnitedStates, "CO", &["COLORADO", "COLO"]),
    (UnitedStates, "CT", &["CONNECTICUT", "CONN"]),
    (UnitedStates, "DE", &["DELAWARE", "DEL"]),
    (UnitedStates, "DC", &["DISTRICTOFCOLUMBIA", "WASHINGTONDC"]),
    (UnitedStates, "FL", &["FLORIDA", "FLA"]),
    (UnitedStates, "GA", &["GEORGIA"]),
    (UnitedStates, "HI", &["HAWAII"]),
    (UnitedStates, "ID", &["IDAHO"]),
    (UnitedStates, "IL", &["ILLINOIS", "ILL"]),
    (UnitedStates, "IN", &["INDIANA", "IND"]),
    (UnitedStates, "IA", &["IOWA"]),
    (UnitedStates, "KS", &["KANSAS", "KANS"]),
    (UnitedStates, "KY", &["KENTUCKY"]),
    (UnitedStates, "LA", &["LOUISIANA"]),
    (UnitedStates, "ME", &["MAINE"]),
    (UnitedStates, "MD", &["MARYLAND"]),
    (UnitedStates, "MA", &["MASSACHUSETTS", "MASS"]),
    (UnitedStates, "MI", &["MICHIGAN", "MICH"]),
    (UnitedStates, "MN", &["MINNESOTA", "MINN"]),
    (UnitedStates, "MS", &["MISSISSIPPI", "MISS"]),
    (UnitedStates, "MO", &["MISSOURI"]),
    (UnitedStates, "MT", &["MONTANA", "MONT"]),
    (UnitedStates, "NE", &["NEBRASKA", "NEBR"]),
    (UnitedStates, "NV", &["NEVADA", "NEV"]),
    (UnitedStates, "NH", &["NEWHAMPSHIRE"]),
    (UnitedStates, "NJ", &["NEWJERSEY"]),
    (UnitedStates, "NM", &["NEWMEXICO"]),
    (UnitedStates, "NY", &["NEWYORK", "NYS"]),
    (UnitedStates, "NC", &["NORTHCAROLINA"]),
    (UnitedStates, "ND", &["NORTHDAKOTA"]),
    (UnitedStates, "OH", &["OHIO"]),
    (UnitedStates, "OK", &["OKLAHOMA", "OKLA"]),
    (UnitedStates, "OR", &["OREGON", "ORE"]),
    (UnitedStates, "PA", &["PENNSYLVANIA", "PENN", "PENNA"]),
    (UnitedStates, "RI", &["RHODEISLAND"]),
    (UnitedStates, "SC", &["SOUTHCAROLINA"]),
    (UnitedStates, "SD", &["SOUTHDAKOTA"]),
    (UnitedStates, "TN", &["TENNESSEE", "TENN"]),
    (UnitedStates, "TX", &["TEXAS", "TEX"]),
    (UnitedStates, "UT", &["UTAH"]),
    (UnitedStates, "VT", &["VERMONT"]),
    (UnitedStates, "VA", &["VIRGINIA"]),
    (UnitedStates, "WA", &["WASHINGTON", "WASH", "WASHINGTONSTATE"]),
    (UnitedStates, "WV", &["WESTVIRGINIA"]),
    (UnitedStates, "WI", &["WISCONSIN", "WIS", "WISC"]),
    (UnitedStates, "WY", &["WYOMING"]),
    (UnitedStates, "AS", &["AMERICANSAMOA"]),
    (UnitedStates, "GU", &["GUAM"]),
    (UnitedStates, "MP", &["NORTHERNMARIANAISLANDS"]),
    (UnitedStates, "PR", &["PUERTORICO"]),
    (UnitedStates, "VI", &["VIRGINISLANDS", "USVIRGINISLANDS", "USVI"]),
    (Canada, "AB", &["ALBERTA", "ALTA"]),
    (Canada, "BC", &["BRITISHCOLUMBIA"]),
    (Canada, "MB", &["MANITOBA", "MAN"]),
    (Canada, "NB", &["NEWBRUNSWICK"]),
    (Canada, "NL", &["NEWFOUNDLAND", "NEWFOUNDLANDANDLABRADOR", "NF", "NFLD"]),
    (Canada, "NS", &["NOVASCOTIA"]),
    (Canada, "NT", &["NORTHWESTTERRITORIES", "NWT"]),
    (Canada, "NU", &["NUNAVUT"]),
    (Canada, "ON", &["ONTARIO", "ONT"]),
    (Canada, "PE", &["PRINCEEDWARDISLAND", "PEI"]),
    (Canada, "QC", &["QUEBEC", "QUE", "QB", "PQ"]),
    (Canada, "SK", &["SASKATCHEWAN", "SASK"]),
    (Canada, "YT", &["YUKON", "YUKONTERRITORY", "YUK"]),
    (Mexico, "MX-AGU", &["AGUASCALIENTES"]),
    (Mexico, "MX-BCN", &["BAJACALIFORNIA"]),
    (Mexico, "MX-BCS", &["BAJACALIFORNIASUR"]),
    (Mexico, "MX-CAM", &["CAMPECHE"]),
    (Mexico, "MX-CHH", &["CHIHUAHUA"]),
    (Mexico, "MX-CHP", &["CHIAPAS"]),
    (Mexico, "MX-CMX", &["CIUDADDEMEXICO", "MEXICOCITY"]),
    (Mexico, "MX-COA", &["COAHUILA"]),
    (Mexico, "MX-COL", &["COLIMA"]),
    (Mexico, "MX-DUR", &["DURANGO"]),
    (Mexico, "MX-GRO", &["GUERRERO"]),
    (Mexico, "MX-GUA", &["GUANAJUATO"]),
    (Mexico, "MX-HID", &["HIDALGO"]),
    (Mexico, "MX-JAL", &["JALISCO"]),
    (Mexico, "MX-MEX", &["ESTADODEMEXICO"]),
    (Mexico, "MX-MIC", &["MICHOACAN"]),
    (Mexico, "MX-MOR", &["MORELOS"]),
    (Mexico, "MX-NAY", &["NAYARIT"]),
    (Mexico, "MX-NLE", &["NUEVOLEON"]),
    (Mexico, "MX-OAX", &["OAXACA"]),
    (Mexico, "MX-PUE", &["PUEBLA"]),
    (Mexico, "MX-QUE", &["QUERETARO"]),
    (Mexico, "MX-ROO", &["QUINTANAROO"]),
    (Mexico, "MX-SIN", &["SINALOA"]),
    (Mexico, "MX-SLP", &["SANLUISPOTOSI"]),
    (Mexico, "MX-SON", &["SONORA"]),
    (Mexico, "MX-TAB", &["TABASCO"]),
    (Mexico, "MX-TAM", &["TAMAULIPAS"]),
    (Mexico, "MX-TLA", &["TLAXCALA"]),
    (Mexico, "MX-VER", &["VERACRUZ"]),
    (Mexico, "MX-YUC", &["YUCATAN"]),
    (Mexico, "MX-ZAC", &["ZACATECAS"]),
];

/// The code of a state: of `NY`, `new york` and `US-NY` it is `NY`; of `ONT`, `Ontario` and `CA-ON` it is `ON`.
///
/// An unknown spelling is its own code: its letters and digits, in capital letters. So it equals the same spelling only, and
/// differs from every known state. `None` for text without a letter or digit.
#[must_use]
pub(super) fn state_code(text: &str) -> Option<String> {
    let spelling = bare(text);
    if spelling.is_empty() {
        return None;
    }
    let known = STATES.iter().find(|(_, code, others)| *code == spelling || others.contains(&spelling.as_str()));
    let code = known.or_else(|| with_country(&spelling)).map(|(_, code, _)| *code);
    Some(code.map_or(spelling, str::to_owned))
}

/// Whether a part of a plate's text is the code of a state, by which it can be told from the number. Codes of islands are
/// left out: numbers begin with them more often.
#[must_use]
pub(super) fn is_state_code(part: &str) -> bool {
    const LEFT_OUT: [&str; 4] = ["AS", "GU", "MP", "VI"];
    part.len() == 2 && STATES.iter().any(|(_, code, _)| *code == part) && !LEFT_OUT.contains(&part)
}

/// The state of a code with the prefix of its country, such as `USNY` from `US-NY`.
fn with_country(spelling: &str) -> Option<&'static (Country, &'static str, &'static [&'static str])> {
    const PREFIXES: [(&str, Country); 6] =
        [("USA", UnitedStates), ("US", UnitedStates), ("CAN", Canada), ("CA", Canada), ("MEX", Mexico), ("MX", Mexico)];
    PREFIXES.iter().find_map(|(prefix, country)| {
        let rest = spelling.strip_prefix(prefix)?;
        STATES.iter().find(|(own, code, _)| own == country && code.strip_prefix("MX-").unwrap_or(code) == rest)
    })
}

/// Letters and digits only, in capital letters without accents.
fn bare(text: &str) -> String {
    let accent = |c: char| match c {
        'Á' => 'A',
        'É' | 'È' => 'E',
        'Í' => 'I',
        'Ó' => 'O',
        'Ú' => 'U',
        other => other,
    };
    nfc(&text.to_uppercase()).chars().map(accent).filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_one_code_in_every_spelling() {
        for (code, spellings) in [
            ("NJ", &["NJ", " nj ", "US-NJ", "USA NJ", "New Jersey", "NEW  JERSEY", "N.J."][..]),
            ("ON", &["ON", "ONT", "Ontario", "CA-ON", "Ont."]),
            ("QC", &["QC", "QB", "PQ", "Québec", "Quebec", "QUE"]),
            ("DC", &["DC", "D.C.", "Washington, D.C.", "District of Columbia"]),
            ("WA", &["WA", "Washington"]),
            ("CA", &["CA", "US-CA", "California"]),
            ("VI", &["VI", "US Virgin Islands", "U.S. Virgin Islands"]),
            ("MX-SON", &["MX-SON", "Sonora", "MEX SON"]),
            ("MX-NLE", &["Nuevo León"]),
        ] {
            for spelling in spellings {
                assert_eq!(state_code(spelling).as_deref(), Some(code), "{spelling}");
            }
        }
    }

    #[test]
    fn an_unknown_spelling_is_a_code_of_its_own() {
        for (spelling, code) in [("New Jersy", "NEWJERSY"), ("99", "99"), ("zz", "ZZ"), ("US-ON", "USON")] {
            assert_eq!(state_code(spelling).as_deref(), Some(code), "{spelling}");
            assert!(STATES.iter().all(|(_, known, _)| *known != code), "{spelling}");
        }
        for nothing in ["", " ", "-", "."] {
            assert_eq!(state_code(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn no_spelling_has_two_meanings_and_every_code_is_its_own() {
        let mut spellings: Vec<&str> =
            STATES.iter().flat_map(|(_, code, others)| others.iter().chain([code])).copied().collect();
        let count = spellings.len();
        spellings.sort_unstable();
        spellings.dedup();
        assert_eq!(spellings.len(), count);
        for (_, code, others) in STATES {
            assert_eq!(state_code(code).as_deref(), Some(*code));
            for other in *others {
                assert_eq!(state_code(other).as_deref(), Some(*code), "{other}");
                assert_eq!(bare(other), **other, "a spelling without spaces and accents");
            }
        }
    }
}
